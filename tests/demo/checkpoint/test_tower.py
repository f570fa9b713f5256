"""A tower is added to a served folder, whose other tensors keep their bytes."""

import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from twinspark_demo.checkpoint import Place, save_shards
from twinspark_demo.checkpoint.tower import add_tower
from twinspark_demo.vision import DEMO_VISION, VisionShape
from twinspark_demo.vision.parameters import tower_shapes
from twinspark_demo.vision.processor import PROCESSOR_NAME
from twinspark_engine.model.weights.headers import INDEX_NAME, checkpoint_files
from twinspark_engine.model.weights.names import VISION_PREFIX
from twinspark_tools.tiny_checkpoint.folder import write_checkpoint
from twinspark_tools.tiny_checkpoint.shapes import SHAPES

SHAPE = replace(DEMO_VISION, depth=1, out_hidden_size=SHAPES["tiny"].hidden_size)
HEAD = {"heads.things.weight": torch.ones(3)}


def tower(seed: int, shape: VisionShape = SHAPE) -> dict[str, Tensor]:
    """Random values for everything, as a run of the training has them."""
    generator = torch.Generator().manual_seed(seed)
    return {VISION_PREFIX + name: torch.randn(size, generator=generator) for name, size in tower_shapes(shape).items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A served folder without a tower, in two shards."""
    folder = tmp_path / "model"
    write_checkpoint(folder, SHAPES["tiny"])
    return folder


def hashes(files: tuple[Path, ...]) -> list[str]:
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


def test_the_tower_gets_a_shard_of_its_own_and_the_others_keep_their_bytes(folder: Path) -> None:
    before, config = hashes(checkpoint_files(folder)), json.loads((folder / "config.json").read_text())
    tensors = tower(1)
    add_tower(folder, tensors | HEAD, SHAPE)
    *text, own = checkpoint_files(folder)
    assert hashes(tuple(text)) == before
    stored = load_file(own)
    assert stored.keys() == tensors.keys()
    assert all(torch.equal(stored[name], tensors[name].bfloat16()) for name in tensors)
    written = json.loads((folder / "config.json").read_text())
    assert VisionShape.from_config(written.pop("vision_config")) == SHAPE
    assert written == config
    assert json.loads((folder / PROCESSOR_NAME).read_text())["patch_size"] == SHAPE.patch_size
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o644}


def test_another_tower_takes_the_place_of_the_first(folder: Path) -> None:
    add_tower(folder, tower(1), SHAPE)
    before = hashes(checkpoint_files(folder))
    deeper = replace(SHAPE, depth=2)
    add_tower(folder, tower(2, deeper), deeper)
    files = checkpoint_files(folder)
    assert hashes(files[:-1]) == before[:-1]
    assert load_file(files[-1]).keys() == tower(2, deeper).keys()
    assert sorted(folder.glob("*.safetensors")) == sorted(files)
    weight_map = json.loads((folder / INDEX_NAME).read_text())["weight_map"]
    assert set(weight_map) == {name for file in files for name in load_file(file)}


def test_a_tower_that_does_not_fit_is_refused_and_nothing_is_written(folder: Path) -> None:
    before = hashes(tuple(sorted(folder.iterdir())))
    whole = tower(1)
    lacking = {name: tensor for name, tensor in whole.items() if "downsample.bias" not in name}
    with pytest.raises(KeyError, match=r"downsample\.bias"):
        add_tower(folder, lacking, SHAPE)
    with pytest.raises(ValueError, match=r"patch_embed\.proj\.bias has shape \[3\], the tower \[128\]"):
        add_tower(folder, whole | {VISION_PREFIX + "patch_embed.proj.bias": torch.zeros(3)}, SHAPE)
    wider = replace(SHAPE, out_hidden_size=2 * SHAPE.out_hidden_size)
    with pytest.raises(ValueError, match=r"the tower's rows have \d+ values, the language model's \d+"):
        add_tower(folder, tower(1, wider), wider)
    assert hashes(tuple(sorted(folder.iterdir()))) == before


def test_the_program_refuses_in_one_line(folder: Path, tmp_path: Path) -> None:
    save_shards(tmp_path / "shards", tower(1), Place("vision", 7, 0))
    command = [sys.executable, "-m", "twinspark_demo.checkpoint.tower", str(tmp_path / "shards"), str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert len(ended.stderr.splitlines()) == 1
    assert "blocks.1." in ended.stderr  # the demo's tower is deeper
