"""The program: its table and its exit status follow what the model reads."""

import shutil
from pathlib import Path

import pytest
import torch
import typer
from typer.testing import CliRunner, Result

from twinspark_demo.checkpoint.tower import add_tower
from twinspark_demo.drafts.template import DEMO_FOLDER
from twinspark_demo.images.__main__ import main
from twinspark_demo.vision import DEMO_VISION
from twinspark_demo.vision.parameters import tower_shapes
from twinspark_engine.model.weights.names import VISION_PREFIX
from twinspark_tools.tiny_checkpoint import SHAPES
from twinspark_tools.tiny_checkpoint.folder import write_checkpoint

APP = typer.Typer()
APP.command()(main)


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(APP, ["--model", str(folder), *arguments])


@pytest.fixture
def untrained(tmp_path: Path) -> Path:
    """The served folder with a tower of random values."""
    folder = tmp_path / "model"
    shutil.copytree(DEMO_FOLDER, folder)
    generator = torch.Generator().manual_seed(0)
    shapes = tower_shapes(DEMO_VISION)
    add_tower(
        folder,
        {VISION_PREFIX + name: torch.randn(size, generator=generator) / 16 for name, size in shapes.items()},
        DEMO_VISION,
    )
    return folder


def test_the_committed_model_is_good_enough() -> None:
    result = run(DEMO_FOLDER, "--kinds", "colour, control", "--count", "3")
    assert result.exit_code == 0, result.output
    table = result.stdout.splitlines()
    assert table[1].split()[:3] == ["colour", "3", "100"]
    assert table[2].split()[:3] == ["control", "3", "100"]


def test_an_untrained_tower_is_not(untrained: Path) -> None:
    result = run(untrained, "--kinds", "number", "--count", "2")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert [line.startswith("number: said ") for line in lines[:2]] == [True, True]
    assert lines[-1].split()[:3] == ["number", "2", "0"]


def test_a_kind_that_is_not_there_is_refused() -> None:
    result = run(DEMO_FOLDER, "--kinds", "number,animal")
    assert result.exit_code == 2
    assert "no kind animal" in result.stderr


def test_a_folder_without_a_tower_is_refused_in_one_line(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, SHAPES["tiny"])
    result = run(tmp_path)
    assert result.exit_code == 1
    assert "no vision_config" in str(result.exception)
