"""The program of the search: what it prints, and what it refuses."""

import pytest
import torch
import typer
from typer.testing import CliRunner, Result

from twinspark_demo.quantization import viterbi
from twinspark_demo.quantization.bench import main

APP = typer.Typer()
APP.command()(main)


@pytest.fixture(autouse=True)
def kept_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program sets the batch of its process."""
    monkeypatch.setattr(viterbi, "DEVICE_BATCH", viterbi.DEVICE_BATCH)


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(APP, arguments)


def test_it_prints_time_and_error() -> None:
    result = run("--tiles", "1", "--batch", "1", "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert "ms a tile" in result.output


@pytest.mark.parametrize(("option", "value"), [("--tiles", "0"), ("--batch", "0"), ("--bits", "9"), ("--bits", "0")])
def test_a_number_that_is_not_possible_is_refused(option: str, value: str) -> None:
    result = run("--device", "cpu", "--tiles", "1", option, value)
    assert result.exit_code == 2
    assert f"Invalid value for '{option}'" in result.output


def test_a_device_that_is_not_there_is_refused() -> None:
    device = f"cuda:{torch.cuda.device_count()}"
    result = run("--tiles", "1", "--device", device)
    assert result.exit_code == 2
    assert "--device cpu is always possible" in result.output
