"""The drafter's folder: what is written is read back, and what is off is refused by name."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from support.drafters import random_drafter
from twinspark_demo.drafter import DEMO, Drafter, DrafterConfig
from twinspark_demo.drafter.folder import export_drafter, load_drafter
from twinspark_engine.model.config import ModelConfig
from twinspark_tools.tiny_checkpoint.shapes import SHAPES, config_json

Change = Callable[[dict[str, Tensor]], object]


def tensors_of(drafter: Drafter) -> dict[str, Tensor]:
    return {name: parameter.detach() for name, parameter in drafter.named_parameters()}


@pytest.fixture(scope="module")
def tensors() -> dict[str, Tensor]:
    return tensors_of(random_drafter(DEMO))


def test_a_folder_comes_back_as_it_was_rounded(tensors: dict[str, Tensor], tmp_path: Path) -> None:
    export_drafter(tmp_path, tensors, DEMO)
    loaded = load_drafter(tmp_path)
    assert loaded.config == DEMO
    for name, tensor in tensors_of(loaded).items():
        assert torch.equal(tensor, tensors[name].bfloat16().float()), name
    size = (tmp_path / "model.safetensors").stat().st_size
    assert 7_466_240 < size < 7_480_000
    assert {file.name for file in tmp_path.iterdir()} == {"config.json", "model.safetensors"}
    assert all(tensor.dtype == torch.bfloat16 for tensor in load_file(tmp_path / "model.safetensors").values())


def test_config_has_the_published_fields(tensors: dict[str, Tensor], tmp_path: Path) -> None:
    export_drafter(tmp_path, tensors, DEMO)
    content = json.loads((tmp_path / "config.json").read_text())
    assert content["architectures"] == ["DFlash2DraftModel"]
    assert content["model_type"] == "qwen3"
    assert content["rope_parameters"] == {"rope_type": "default", "rope_theta": 10000.0}
    assert "rope_theta" not in content and "block_size" not in content
    assert content["dflash_config"] == {
        "block_size": 8, "conv_group_size": 16, "conv_kernel_size": 2, "mask_token_id": 2024, "selector_rank": 64,
        "selector_top_k": 16, "target_layer_ids": [1, 3, 4, 6, 7],
    }  # fmt: skip
    assert content["layer_types"] == ["sliding_attention"] * 5
    assert (content["sliding_window"], content["is_causal"], content["num_target_layers"]) == (512, False, 8)
    assert (content["rms_norm_eps"], content["tie_word_embeddings"], content["attention_bias"]) == (1e-5, False, False)
    assert (content["num_attention_heads"], content["num_key_value_heads"], content["head_dim"]) == (4, 2, 64)
    assert content["eos_token_id"] == SHAPES["demo"].eos_token_ids


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.pop("norm.weight"), r"missing or unknown: norm\.weight"),
        (lambda t: t.update({"lm_head.weight": torch.ones(2)}), r"missing or unknown: lm_head\.weight"),
        (lambda t: t.update({"norm.weight": torch.ones(2)}), r"other shapes .*norm\.weight \(2,\)"),
        (
            lambda t: t.update({"norm.weight": torch.cat((torch.ones(255), torch.tensor([torch.nan])))}),
            r"not finite: norm",
        ),
        (lambda t: t.update({"norm.weight": torch.full((256,), 3.4e38)}), r"not finite: norm\.weight"),
    ],
)
def test_tensors_that_are_off_are_not_written(
    change: Change, said: str, tensors: dict[str, Tensor], tmp_path: Path
) -> None:
    others = dict(tensors)
    change(others)
    with pytest.raises(ValueError, match=said):
        export_drafter(tmp_path / "new", others, DEMO)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.pop("norm.weight"), r"missing or unknown: norm\.weight"),
        (lambda t: t.update({"norm.weight": torch.ones(256)}), r"not bfloat16: norm\.weight"),
    ],
)
def test_a_file_that_is_off_is_not_read(change: Change, said: str, tensors: dict[str, Tensor], tmp_path: Path) -> None:
    export_drafter(tmp_path, tensors, DEMO)
    stored = load_file(tmp_path / "model.safetensors")
    change(stored)
    save_file(stored, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match=said):
        load_drafter(tmp_path)


@pytest.mark.parametrize(
    ("field", "value"),
    [("is_causal", True), ("rope_parameters", {"rope_type": "yarn", "rope_theta": 1e4}), ("layer_types", ["full"] * 5),
     ("architectures", ["DFlashDraftModel"]), ("dflash_config", {"block_size": 8}), ("hidden_size", None),
     ("head_dim", 0), ("dflash_config", replace(DEMO, target_layer_ids=(1, 8)).to_json()["dflash_config"])],
)  # fmt: skip
def test_a_config_that_asks_for_something_else_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=r"config\.json"):
        DrafterConfig.from_json({**DEMO.to_json(), field: value})


def test_a_config_comes_back() -> None:
    other = replace(
        DEMO, sliding_window=2048, rope_theta=2e6, rms_norm_eps=1e-6, max_position_embeddings=99, block_size=4,
        conv_kernel_size=3, conv_group_size=32, selector_top_k=5, target_layer_ids=(0, 7), eos_token_ids=(3,),
    )  # fmt: skip
    assert DrafterConfig.from_json(json.loads(json.dumps(other.to_json()))) == other


def test_a_drafter_for_another_target_is_refused() -> None:
    target = ModelConfig.from_json(config_json(SHAPES["demo"]))
    DEMO.check_target(target)
    for field in ("vocab_size", "hidden_size", "num_target_layers"):
        with pytest.raises(ValueError, match="of the target"):
            replace(DEMO, **{field: getattr(DEMO, field) + 1}).check_target(target)
