"""The committed demo model is what this code would write around the same weights."""

import json
from pathlib import Path

import pytest

from twinspark_demo.checkpoint.export import MOST_RANKS, TOKENIZER_FILES
from twinspark_demo.checkpoint.parts import SHARD_BYTES
from twinspark_demo.rows.tokenizer import COMMITTED_TOKENIZER
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.weights.headers import INDEX_NAME
from twinspark_engine.model.weights.plan import build_plan
from twinspark_tools.launch.model_folder import DEMO_FOLDER
from twinspark_tools.tiny_checkpoint.folder import write_settings
from twinspark_tools.tiny_checkpoint.shapes import SHAPES

FOLDER = Path(__file__).parents[3] / DEMO_FOLDER
MOST_BYTES = 25_000_000


def test_settings_and_template_are_those_of_the_shape(tmp_path: Path) -> None:
    write_settings(tmp_path, SHAPES["demo"])
    for file in tmp_path.iterdir():
        assert (FOLDER / file.name).read_bytes() == file.read_bytes(), file.name


@pytest.mark.parametrize("name", TOKENIZER_FILES)
def test_tokenizer_is_the_one_that_training_uses(name: str) -> None:
    assert (FOLDER / name).read_bytes() == (COMMITTED_TOKENIZER.parent / name).read_bytes()


def test_the_engine_takes_every_tensor_on_as_many_ranks_as_it_is_split_to() -> None:
    plan = build_plan(FOLDER, ModelConfig.from_folder(FOLDER), MOST_RANKS)
    assert plan.has_mtp


def test_folder_holds_small_files_and_nothing_else(tmp_path: Path) -> None:
    write_settings(tmp_path, SHAPES["demo"])
    shards = set(json.loads((FOLDER / INDEX_NAME).read_text(encoding="utf-8"))["weight_map"].values())
    settings = {file.name for file in tmp_path.iterdir()}
    assert {file.name for file in FOLDER.iterdir()} == {*settings, *TOKENIZER_FILES, INDEX_NAME, *shards}
    sizes = [file.stat().st_size for file in FOLDER.iterdir()]
    assert max(sizes) <= SHARD_BYTES
    assert sum(sizes) <= MOST_BYTES
