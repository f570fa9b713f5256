"""The committed drafter is what this code would write around the same weights, and drafts well."""

import json
from pathlib import Path

import pytest

from twinspark_demo.drafter import DEMO
from twinspark_demo.drafter.folder import load_drafter
from twinspark_demo.rounds.measure import measure
from twinspark_engine.model.config import ModelConfig
from twinspark_tools.launch.model_folder import DEMO_FOLDER

MODEL = Path(__file__).parents[3] / DEMO_FOLDER
FOLDER = MODEL.parent / "drafter"
MOST_BYTES = 32_000_000  # of all files of the demo model
PROMPTS, SEED = 3, 11


def test_config_is_that_of_the_demo_and_fits_the_committed_model() -> None:
    assert json.loads((FOLDER / "config.json").read_text(encoding="utf-8")) == DEMO.to_json()
    DEMO.check_target(ModelConfig.from_folder(MODEL))


def test_the_folder_is_whole_and_small() -> None:
    assert len(dict(load_drafter(FOLDER).named_parameters())) == 81
    assert {file.name for file in FOLDER.iterdir()} == {"config.json", "model.safetensors"}
    folders = (MODEL, FOLDER, MODEL.parent / "tokenizer")
    assert sum(file.stat().st_size for folder in folders for file in folder.iterdir()) <= MOST_BYTES


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_round_keeps_several_tokens() -> None:
    """More than the mark of 3.5, on other prompts than the README's table."""
    measured = {kind.kind: kind.kept for kind in measure(MODEL, FOLDER, ["copy", "json", "rename"], PROMPTS, SEED)}
    assert len(measured) == 3
    assert all(kept is not None and kept >= 5.0 for kept in measured.values()), measured
