"""load_weights: every parameter of every plain layout arrives, on one rank and on two, with its exact value."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import Glm5NextConfig, Glm5NextForConditionalGeneration

from support.checkpoint_folders import all_shapes, micro_config, random_plain, write_folder
from support.published_names import published
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.weights import load_weights
from twinspark_engine.model.weights.reader import WHOLE, CheckpointReader

RANKS = (1, 2)
NATIVE_NAMES = ((".self_attn.forget_gate.", ".self_attn."), (".attn_hc.", ".hc_attn_"), (".ffn_hc.", ".hc_ffn_"))


def load_published(folder: Path, world_size: int, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    config = ModelConfig.from_folder(folder)
    ranks = [load_weights(folder, config, rank, world_size, dtype) for rank in range(world_size)]
    return published(config, ranks)


def assert_same_parameters(actual: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert actual.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(actual[name], tensor.to(actual[name].dtype)), name


@pytest.mark.parametrize("world_size", RANKS)
@pytest.mark.parametrize("stored", [torch.bfloat16, torch.float16, torch.float32])
def test_published_folder_gives_every_parameter(tmp_path: Path, world_size: int, stored: torch.dtype) -> None:
    content = micro_config()
    tensors = random_plain(ModelConfig.from_json(content), stored)
    write_folder(tmp_path, content, tensors)
    assert_same_parameters(load_published(tmp_path, world_size), tensors)


def test_sharded_folder_gives_the_same_as_a_single_file(tmp_path: Path) -> None:
    content = micro_config()
    tensors = random_plain(ModelConfig.from_json(content))
    write_folder(tmp_path, content, tensors, shards=3)
    assert_same_parameters(load_published(tmp_path, 2), tensors)


def test_convolutions_without_the_middle_axis_are_the_same(tmp_path: Path) -> None:
    content = micro_config()
    tensors = random_plain(ModelConfig.from_json(content))
    flat = {name: tensor.flatten(1) if tensor.dim() == 3 else tensor for name, tensor in tensors.items()}
    write_folder(tmp_path, content, flat)
    assert_same_parameters(load_published(tmp_path, 2), tensors)


def test_compute_dtype_keeps_what_must_stay_fp32(tmp_path: Path) -> None:
    content = micro_config()
    config = ModelConfig.from_json(content)
    write_folder(tmp_path, content, random_plain(config, torch.float32))
    actual = load_published(tmp_path, 1, torch.bfloat16)
    fp32 = {name.split(".")[-1] for name, tensor in actual.items() if tensor.dtype is torch.float32}
    sites = {f"hc_{site}_{part}" for site in ("attn", "ffn") for part in ("fn", "base", "scale")}
    assert fp32 == sites | {"A_log", "dt_bias", "e_score_correction_bias", "index_kpool_compress_ape", "weight"}
    wide = {
        name.rsplit(".", 2)[1]
        for name, tensor in actual.items()
        if name.endswith("weight") and tensor.dtype is torch.float32
    }
    assert wide == {"q_conv1d", "k_conv1d", "v_conv1d"}


def test_missing_mtp_layer_gives_none(tmp_path: Path) -> None:
    content = micro_config()
    config = ModelConfig.from_json(content)
    tensors = {name: tensor for name, tensor in random_plain(config).items() if ".layers.4." not in name}
    write_folder(tmp_path, content, tensors)
    weights = load_weights(tmp_path, config, 0, 1, torch.float32)
    assert weights.mtp is None
    assert_same_parameters(published(config, [weights]), tensors)


def test_vocabulary_offset_is_the_rank_s_first_row(tmp_path: Path) -> None:
    content = micro_config()
    config = ModelConfig.from_json(content)
    write_folder(tmp_path, content, random_plain(config))
    offsets = [load_weights(tmp_path, config, rank, 2, torch.float32).vocab_offset for rank in (0, 1)]
    assert offsets == [0, 46]


def test_parameters_are_copies_that_outlive_the_file(tmp_path: Path) -> None:
    content = micro_config()
    config = ModelConfig.from_json(content)
    tensors = random_plain(config, torch.float32)
    write_folder(tmp_path, content, tensors)
    ranks = [load_weights(tmp_path, config, 0, 1, torch.float32)]
    file = tmp_path / "model.safetensors"
    with file.open("r+b") as stream:
        stream.write(bytes(file.stat().st_size))
    assert_same_parameters(published(config, ranks), tensors)


def test_rank_reads_only_its_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = micro_config()
    config = ModelConfig.from_json(content)
    write_folder(tmp_path, content, random_plain(config))
    shapes: dict[str, torch.Size] = {}
    read_stored = CheckpointReader.read_stored

    def recording(self: CheckpointReader, name: str, rows: slice = WHOLE, columns: slice = WHOLE) -> Tensor:
        shapes[name] = (values := read_stored(self, name, rows, columns)).shape
        return values

    monkeypatch.setattr(CheckpointReader, "read_stored", recording)
    load_weights(tmp_path, config, 1, 2, torch.float32)
    halved = {name: tuple(shape) for name, shape in all_shapes(config).items() if shapes[name] != shape}
    for name, shape in halved.items():
        axis = 1 if name.endswith(("o_proj.weight", "down_proj.weight")) else 0
        assert shapes[name][axis] * 2 == shape[axis], name
    whole = {name.split(".", 4)[-1] for name in shapes.keys() - halved.keys()}
    assert not any(part in name for name in whole for part in ("experts.0", "q_proj", "q_b_proj", "kv_b", "o_proj"))
    assert "mlp.gate.weight" in whole


def test_progress_ends_at_the_total(tmp_path: Path) -> None:
    content = micro_config()
    config = ModelConfig.from_json(content)
    tensors = random_plain(config)
    write_folder(tmp_path, content, tensors)
    seen: list[tuple[int, int]] = []
    load_weights(tmp_path, config, 1, 2, torch.float32, lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] == sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def transformers_model(dtype: torch.dtype) -> Glm5NextForConditionalGeneration:
    text = {**micro_config()["text_config"], "pad_token_id": 0}  # type: ignore[dict-item]
    vision = {"depth": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 16, "out_hidden_size": 128}
    config = Glm5NextConfig(text_config=text, vision_config=vision | {"projection_intermediate_size": 32})
    torch.manual_seed(5)
    model = Glm5NextForConditionalGeneration(config)
    with torch.no_grad():
        for tensor in [*model.parameters(), *model.buffers()]:
            tensor.copy_(torch.randn(tensor.shape))
    return model.to(dtype)


def published_of(model: Glm5NextForConditionalGeneration) -> dict[str, Tensor]:
    """The module's own parameters under their published names, unstacked here by hand."""
    tensors: dict[str, Tensor] = {}
    for name, tensor in model.state_dict().items():
        for native, official in NATIVE_NAMES:
            name = name.replace(native, official)
        if ".visual." in name:
            continue
        if name.endswith("experts.gate_up_proj"):
            prefix = name.removesuffix("gate_up_proj")
            for expert, (gate, up) in enumerate(part.chunk(2) for part in tensor):
                tensors |= {f"{prefix}{expert}.gate_proj.weight": gate, f"{prefix}{expert}.up_proj.weight": up}
        elif name.endswith("experts.down_proj"):
            prefix = name.removesuffix("down_proj")
            tensors |= {f"{prefix}{expert}.down_proj.weight": part for expert, part in enumerate(tensor)}
        elif name.endswith("self_attn.conv1d.weight"):
            prefix = name.removesuffix("conv1d.weight")
            tensors |= {
                f"{prefix}{part}_conv1d.weight": rows for part, rows in zip("qkv", tensor.chunk(3), strict=True)
            }
        else:
            tensors[name] = tensor
    return tensors


@pytest.mark.parametrize("world_size", RANKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("original_names", [True, False])
def test_save_pretrained_folder_gives_the_model_s_parameters(
    tmp_path: Path, world_size: int, dtype: torch.dtype, original_names: bool
) -> None:
    model = transformers_model(dtype)
    model.save_pretrained(tmp_path, save_original_format=original_names, max_shard_size="500KB")
    assert (tmp_path / "model.safetensors.index.json").exists()
    assert_same_parameters(load_published(tmp_path, world_size), published_of(model))


def test_save_pretrained_config_reads_as_the_published_one(tmp_path: Path) -> None:
    transformers_model(torch.float32).config.save_pretrained(tmp_path)
    assert '"linear_head_dim": 12' in (tmp_path / "config.json").read_text()
    assert ModelConfig.from_folder(tmp_path) == ModelConfig.from_json(micro_config())
