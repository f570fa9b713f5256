"""From the shards of a training run to the served folder, in one command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from twinspark_demo.checkpoint import Place, save_shards
from twinspark_demo.checkpoint.__main__ import write_served_folder
from twinspark_demo.quantization import collect
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.weights.names import expert_prefix
from twinspark_tools.tiny_checkpoint.draws import Draws
from twinspark_tools.tiny_checkpoint.shapes import SHAPES, config_json
from twinspark_tools.tiny_checkpoint.weights import random_tensors

PLACE = Place("recovery", 2200, 3)
EXPERT = expert_prefix(5, 11, "down_proj")


@pytest.fixture(scope="module")
def tensors() -> dict[str, Tensor]:
    """What shards of the demo shape hold once the experts are quantized."""
    return random_tensors(ModelConfig.from_json(config_json(SHAPES["demo"])), Draws(0), SHAPES["demo"].expert_bits)


def without_quantization_of(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same shards with one expert's matrix as it is while training."""
    kept = {name: tensor for name, tensor in tensors.items() if not name.startswith(f"{prefix}.")}
    return kept | {f"{prefix}.weight": torch.zeros(256, 256)}


def test_program_writes_every_tensor_of_the_shards_and_prints_sizes(tensors: dict[str, Tensor], tmp_path: Path) -> None:
    shards, folder = tmp_path / "shards", tmp_path / "new" / "folder"
    save_shards(shards, tensors, PLACE)
    command = [sys.executable, "-m", "twinspark_demo.checkpoint", str(shards), str(folder)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    stored = {name: tensor for file in folder.glob("*.safetensors") for name, tensor in load_file(file).items()}
    assert stored.keys() == tensors.keys()
    assert all(torch.equal(stored[name], tensor.view_as(stored[name])) for name, tensor in tensors.items())
    files = sorted(folder.iterdir())
    assert {"config.json", "generation_config.json", "chat_template.jinja", "tokenizer.json"} < {f.name for f in files}
    assert [line.split()[-1] for line in printed[:-1]] == [file.name for file in files]
    total = sum(file.stat().st_size for file in files) / 1e6
    assert printed[-1] == f"{total:9.3f} MB  {folder}, from stage recovery, step 2200, seed 3"


def test_an_expert_that_is_not_quantized_is_refused_by_name(tensors: dict[str, Tensor], tmp_path: Path) -> None:
    shards, folder = tmp_path / "shards", tmp_path / "folder"
    save_shards(shards, without_quantization_of(EXPERT, tensors), Place("long", 40, 3))
    with pytest.raises(ValueError, match=rf"1 expert matrices .*stage long, step 40.*{EXPERT}\.weight"):
        write_served_folder(shards, folder)
    assert not folder.exists()


def test_shards_before_the_quantization_are_refused_in_one_line(tensors: dict[str, Tensor], tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    plain = {name: tensor for name, tensor in tensors.items() if ".mlp.experts." not in name}
    plain |= {f"{prefix}.weight": torch.zeros(256, 256) for prefix in collect(tensors)}
    save_shards(shards, plain, Place("short", 9500, 3))
    command = [sys.executable, "-m", "twinspark_demo.checkpoint", str(shards), str(tmp_path / "folder")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert ended.stderr.startswith(f"{shards}: 216 expert matrices are not quantized (stage short, step 9500, seed 3)")
    assert len(ended.stderr.splitlines()) == 1


def test_a_folder_without_shards_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write_served_folder(tmp_path / "nowhere", tmp_path / "folder")


def test_shards_that_lack_a_tensor_are_refused_by_name(tensors: dict[str, Tensor], tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    save_shards(shards, tensors, PLACE)
    index = shards / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    del content["weight_map"]["lm_head.weight"]
    index.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"lm_head\.weight"):
        write_served_folder(shards, tmp_path / "folder")
