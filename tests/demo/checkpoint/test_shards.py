"""Resume state: small files, everything back, and a word about what is missing."""

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor

from twinspark_demo.checkpoint import Place, load_shards, save_shards
from twinspark_demo.checkpoint.parts import SHARD_BYTES
from twinspark_demo.quantization import Exl3Tensors, collect
from twinspark_kernels.exl3 import Codebook

PLACE = Place(stage="long", step=120, seed=7)
MATRIX_BYTES = 3 * 2**20  # in bf16


def state(matrices: int) -> dict[str, Tensor]:
    """fp32 matrices, and a bias that stays fp32."""
    size = MATRIX_BYTES // 2
    tensors = {f"layers.{i}.experts.gate_up": torch.full((size,), i + 1 / 3) for i in range(matrices)}
    return tensors | {"layers.0.dt_bias": torch.rand(64)}


def quantized() -> Exl3Tensors:
    words = torch.randint(-(1 << 15), 1 << 15, (8, 8, 64), dtype=torch.int16)
    return Exl3Tensors(words, torch.rand(128).half(), torch.rand(128).half(), Codebook.MCG)


def test_shards_are_small_and_everything_comes_back_as_stored(tmp_path: Path) -> None:
    tensors = state(matrices=12)
    save_shards(tmp_path, tensors, PLACE)
    sizes = [file.stat().st_size for file in tmp_path.glob("*.safetensors")]
    assert len(sizes) == 3
    assert max(sizes) <= SHARD_BYTES
    loaded, place = load_shards(tmp_path)
    assert place == PLACE
    assert loaded.keys() == tensors.keys()
    for name, tensor in tensors.items():
        expected = tensor if name.endswith("dt_bias") else tensor.bfloat16()
        assert loaded[name].dtype == expected.dtype, name
        assert torch.equal(loaded[name], expected), name


def test_quantized_experts_come_back_exactly(tmp_path: Path) -> None:
    experts = {"layers.3.mlp.experts.0.up_proj": quantized(), "layers.3.mlp.experts.1.up_proj": quantized()}
    named = {name: tensor for prefix, matrix in experts.items() for name, tensor in matrix.named(prefix).items()}
    save_shards(tmp_path, named, PLACE)
    found = collect(load_shards(tmp_path)[0])
    assert found.keys() == experts.keys()
    for prefix, matrix in experts.items():
        assert found[prefix].codebook is matrix.codebook
        for name, tensor in matrix.named(prefix).items():
            assert torch.equal(found[prefix].named(prefix)[name], tensor), name


def test_a_folder_of_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no run has saved there"):
        load_shards(tmp_path / "nothing")


def test_a_served_folder_is_no_runs_folder(tmp_path: Path) -> None:
    save_shards(tmp_path, state(matrices=2), PLACE)
    (tmp_path / "place.json").unlink()  # a served folder has an index, but no place
    with pytest.raises(FileNotFoundError, match=r"holds no place\.json: it is no folder of a training run's shards"):
        load_shards(tmp_path)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    save_shards(tmp_path, state(matrices=12), PLACE)
    (tmp_path / "model-00002-of-00003.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="lacks model-00002-of-00003"):
        load_shards(tmp_path)


def test_a_tensor_that_the_index_lacks_is_named(tmp_path: Path) -> None:
    save_shards(tmp_path, state(matrices=2), PLACE)
    index = tmp_path / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    content["weight_map"]["layers.9.lost"] = "model-00001-of-00001.safetensors"
    index.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"disagree on \['layers\.9\.lost'\]"):
        load_shards(tmp_path)


def test_a_later_state_replaces_an_earlier_one(tmp_path: Path) -> None:
    save_shards(tmp_path, state(matrices=12), PLACE)
    later = Place("recovery", 4, 7)
    save_shards(tmp_path, state(matrices=2), later)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "model-00001-of-00001.safetensors",
        "model.safetensors.index.json",
        "place.json",
    ]
    assert load_shards(tmp_path)[1] == later


def test_a_stop_while_saving_leaves_the_earlier_state(tmp_path: Path) -> None:
    save_shards(tmp_path, state(matrices=2), PLACE)
    (tmp_path / ".new").mkdir()
    (tmp_path / ".new" / "model-00001-of-00009.safetensors").write_bytes(b"half")
    assert load_shards(tmp_path)[1] == PLACE
    save_shards(tmp_path, state(matrices=2), Place("long", 240, 7))
    assert load_shards(tmp_path)[1].step == 240


def test_a_tensor_larger_than_a_shard_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="huge has 16000000 bytes"):
        save_shards(tmp_path, {"huge": torch.zeros(8_000_000)}, PLACE)
