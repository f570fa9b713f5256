"""The committed demo model is what this code would write around the same weights."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from twinspark_demo.checkpoint.export import MOST_RANKS, TOKENIZER_FILES
from twinspark_demo.checkpoint.parts import SHARD_BYTES
from twinspark_demo.checkpoint.tower import CONFIG_NAME, with_vision
from twinspark_demo.rows.tokenizer import COMMITTED_TOKENIZER
from twinspark_demo.vision import DEMO_VISION
from twinspark_demo.vision.parameters import tower_shapes
from twinspark_demo.vision.processor import PROCESSOR_NAME, processor_json
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.weights.headers import INDEX_NAME, checkpoint_files
from twinspark_engine.model.weights.names import VISION_PREFIX
from twinspark_engine.model.weights.plan import build_plan
from twinspark_tools.launch.model_folder import DEMO_FOLDER
from twinspark_tools.tiny_checkpoint.folder import write_json, write_settings
from twinspark_tools.tiny_checkpoint.shapes import SHAPES

FOLDER = Path(__file__).parents[3] / DEMO_FOLDER
MOST_BYTES = 32_000_000 - 7_500_000  # a drafter's folder has room beside it


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """A folder of the shape's settings and template, and the tower's."""
    write_settings(tmp_path, SHAPES["demo"])
    config = json.loads((tmp_path / CONFIG_NAME).read_text(encoding="utf-8"))
    write_json(tmp_path / CONFIG_NAME, with_vision(config, DEMO_VISION))
    write_json(tmp_path / PROCESSOR_NAME, processor_json(DEMO_VISION))
    return tmp_path


def test_settings_and_template_are_those_of_the_shape_and_the_tower(settings: Path) -> None:
    for file in settings.iterdir():
        assert (FOLDER / file.name).read_bytes() == file.read_bytes(), file.name


@pytest.mark.parametrize("name", TOKENIZER_FILES)
def test_tokenizer_is_the_one_that_training_uses(name: str) -> None:
    assert (FOLDER / name).read_bytes() == (COMMITTED_TOKENIZER.parent / name).read_bytes()


def test_the_engine_takes_every_tensor_on_as_many_ranks_as_it_is_split_to() -> None:
    plan = build_plan(FOLDER, ModelConfig.from_folder(FOLDER), MOST_RANKS)
    assert plan.has_mtp


def test_the_tower_has_a_shard_of_its_own_in_the_published_names() -> None:
    *text, own = [load_file(file) for file in checkpoint_files(FOLDER)]
    assert not any(name.startswith(VISION_PREFIX) for part in text for name in part)
    expected = {VISION_PREFIX + name: shape for name, shape in tower_shapes(DEMO_VISION).items()}
    assert {name: tuple(tensor.shape) for name, tensor in own.items()} == expected
    assert all(tensor.dtype is torch.bfloat16 and tensor.isfinite().all() for tensor in own.values())


def test_folder_holds_small_files_and_nothing_else(settings: Path) -> None:
    shards = set(json.loads((FOLDER / INDEX_NAME).read_text(encoding="utf-8"))["weight_map"].values())
    written = {file.name for file in settings.iterdir()}
    assert {file.name for file in FOLDER.iterdir()} == {*written, *TOKENIZER_FILES, INDEX_NAME, *shards}
    sizes = [file.stat().st_size for file in FOLDER.iterdir()]
    assert max(sizes) <= SHARD_BYTES
    assert sum(sizes) <= MOST_BYTES
