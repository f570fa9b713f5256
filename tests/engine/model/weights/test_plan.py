"""What headers show is refused by name, before anything is allocated."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from support.checkpoint_folders import micro_config, random_plain, write_folder
from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.weights import build_plan

CONFIG = ModelConfig.from_json(micro_config())
TENSORS = random_plain(CONFIG)
PREFIX = "model.language_model.layers."


def refusal_of(folder: Path, world_size: int = 1) -> CheckpointError:
    with pytest.raises(CheckpointError) as refusal:
        build_plan(folder, ModelConfig.from_folder(folder), world_size)
    return refusal.value


@pytest.mark.parametrize("name", sorted(TENSORS))
def test_each_missing_tensor_is_named(tmp_path: Path, name: str) -> None:
    tensors = dict(TENSORS)
    del tensors[name]
    error = refusal_of(write_folder(tmp_path, micro_config(), tensors))
    assert error.reason is CheckpointReason.TENSOR_MISSING
    assert str(error) == f"{name} is missing"


@pytest.mark.parametrize(
    ("name", "tensor", "reason", "message"),
    [
        (
            "lm_head.weight",
            torch.zeros(92, 100),
            CheckpointReason.TENSOR_SHAPE,
            "has shape [92, 100]: [92, 128] is needed",
        ),
        (f"{PREFIX}0.hc_attn_base", torch.zeros(25), CheckpointReason.TENSOR_SHAPE, "has shape [25]: [24] is needed"),
        (
            f"{PREFIX}0.self_attn.q_conv1d.weight",
            torch.zeros(48, 4, 1),
            CheckpointReason.TENSOR_SHAPE,
            "has shape [48, 4, 1]: [48, 1, 4] or [48, 4] is needed",
        ),
        (
            f"{PREFIX}0.mlp.up_proj.weight",
            torch.zeros(88, 128, dtype=torch.int8),
            CheckpointReason.TENSOR_DTYPE,
            "has dtype I8: BF16 or F16 or F32 is needed",
        ),
        (
            f"{PREFIX}2.self_attn.q_a_proj.bias",
            torch.zeros(20),
            CheckpointReason.TENSOR_UNEXPECTED,
            "is no parameter of this architecture",
        ),
        (f"{PREFIX}5.enorm.weight", torch.zeros(128), CheckpointReason.TENSOR_UNEXPECTED, "is no parameter"),
    ],
)
def test_wrong_tensor_is_named(
    tmp_path: Path, name: str, tensor: torch.Tensor, reason: CheckpointReason, message: str
) -> None:
    error = refusal_of(write_folder(tmp_path, micro_config(), TENSORS | {name: tensor}))
    assert error.reason is reason
    assert f"{name} {message}" in str(error)


def test_vision_tensors_are_ignored(tmp_path: Path) -> None:
    tensors = TENSORS | {"model.visual.blocks.0.norm1.weight": torch.zeros(7)}
    plan = build_plan(write_folder(tmp_path, micro_config(), tensors), CONFIG, 2)
    assert plan.entries.keys() == TENSORS.keys()
    assert plan.has_mtp


@pytest.mark.parametrize("cut", [1, 1000, 10_000_000])
def test_truncated_file_is_named(tmp_path: Path, cut: int) -> None:
    write_folder(tmp_path, micro_config(), TENSORS)
    file = tmp_path / "model.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[: max(len(content) - cut, 100)])
    error = refusal_of(tmp_path)
    assert error.reason is CheckpointReason.FILE_UNREADABLE
    assert "model.safetensors: truncated" in str(error)


def test_file_that_goes_on_after_its_data_is_named(tmp_path: Path) -> None:
    write_folder(tmp_path, micro_config(), TENSORS)
    with (tmp_path / "model.safetensors").open("ab") as stream:
        stream.write(b"more")
    assert "model.safetensors: 4 bytes follow what its header describes" in str(refusal_of(tmp_path))


@pytest.mark.parametrize("content", [b"", b"\0" * 8, b"\xff" * 64, b"\x08" + b"\0" * 7 + b"not json"])
def test_file_that_is_no_safetensors_is_named(tmp_path: Path, content: bytes) -> None:
    write_folder(tmp_path, micro_config(), TENSORS)
    (tmp_path / "model.safetensors").write_bytes(content)
    error = refusal_of(tmp_path)
    assert error.reason is CheckpointReason.FILE_UNREADABLE
    assert str(error).startswith("model.safetensors: ")


def test_header_whose_bytes_do_not_fit_its_shape_is_named(tmp_path: Path) -> None:
    write_folder(tmp_path, micro_config(), {})
    header = json.dumps({"x": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))
    assert "x has 8 bytes, not those of F32 [3]" in str(refusal_of(tmp_path))


def test_folder_without_weights_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(micro_config()))
    assert "no safetensors file" in str(refusal_of(tmp_path))


def test_missing_shard_is_named(tmp_path: Path) -> None:
    write_folder(tmp_path, micro_config(), TENSORS, shards=3)
    (tmp_path / "model-00001-of-00003.safetensors").unlink()
    error = refusal_of(tmp_path)
    assert error.reason is CheckpointReason.FILE_UNREADABLE
    assert "model-00001-of-00003.safetensors" in str(error)


def test_index_that_names_the_wrong_shard_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path, micro_config(), TENSORS, shards=2)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    index["weight_map"]["lm_head.weight"] = "model-00001-of-00002.safetensors"
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "lm_head.weight is not in model-00001-of-00002.safetensors" in str(refusal_of(tmp_path))


@pytest.mark.parametrize("file", ["../model.safetensors", "model.bin", 3])
def test_index_that_points_out_of_the_folder_is_refused(tmp_path: Path, file: object) -> None:
    write_folder(tmp_path, micro_config(), {})
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"x": file}}))
    assert refusal_of(tmp_path).reason is CheckpointReason.CONFIG_UNREADABLE


def test_shards_without_an_index_are_all_read(tmp_path: Path) -> None:
    write_folder(tmp_path, micro_config(), TENSORS, shards=2)
    (tmp_path / "model.safetensors.index.json").unlink()
    assert len(build_plan(tmp_path, CONFIG, 1).entries) == len(TENSORS)


def test_parameter_that_is_stored_twice_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path, micro_config(), TENSORS, shards=2)
    (tmp_path / "model.safetensors.index.json").unlink()
    save_file({"lm_head.weight": torch.zeros(92, 128)}, tmp_path / "other.safetensors")
    assert "lm_head.weight is stored twice" in str(refusal_of(tmp_path))


def test_parameter_under_two_spellings_is_refused(tmp_path: Path) -> None:
    tensors = TENSORS | {f"{PREFIX}0.attn_hc.base": torch.zeros(24)}
    assert "are the same parameter" in str(refusal_of(write_folder(tmp_path, micro_config(), tensors)))


def test_world_size_that_does_not_divide_is_refused(tmp_path: Path) -> None:
    error = refusal_of(write_folder(tmp_path, micro_config(), TENSORS), world_size=3)
    assert error.reason is CheckpointReason.SIZE_NOT_DIVISIBLE
