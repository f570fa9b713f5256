"""The program refuses at once what it could not carry out."""

from pathlib import Path

import pytest
import torch
import typer
from typer.testing import CliRunner, Result

from twinspark_demo.checkpoint import Place, save_shards
from twinspark_demo.training.__main__ import main
from twinspark_engine.model.config import ModelConfig
from twinspark_tools.tiny_checkpoint.draws import Draws
from twinspark_tools.tiny_checkpoint.shapes import SHAPES, config_json
from twinspark_tools.tiny_checkpoint.weights import random_tensors

APP = typer.Typer()
APP.command()(main)
NO_STEPS = ["short=0", "long=0", "recovery=0"]


def test_a_plan_without_a_stage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="leaves no stage"):
        main(out=tmp_path, steps=NO_STEPS)


def test_a_run_cannot_resume_and_begin(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="only one of them"):
        main(out=tmp_path, resume=tmp_path, begin_with=tmp_path)


def run(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "200"}).invoke(APP, list(map(str, arguments)))


@pytest.mark.parametrize("option", ["--report-every", "--save-every"])
def test_steps_between_two_reports_are_at_least_one(option: str, tmp_path: Path) -> None:
    result = run("--out", tmp_path, option, 0)
    assert result.exit_code == 2
    assert f"Invalid value for '{option}'" in result.output


def test_a_tokenizer_that_is_not_there_is_named() -> None:
    result = run("--out", "never", "--tokenizer", "/nowhere.json")
    assert result.exit_code == 2
    assert "/nowhere.json" in result.output


def test_a_run_does_not_go_back_to_stages_before_the_one_it_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "set_float32_matmul_precision", lambda _: None)  # of the whole process
    shape = SHAPES["demo"]
    tensors = random_tensors(ModelConfig.from_json(config_json(shape)), Draws(0), shape.expert_bits)
    save_shards(tmp_path, tensors, Place("recovery", 7, 0))
    result = run("--out", tmp_path / "out", "--resume", tmp_path, "--steps", "recovery=0")
    assert result.exit_code == 1
    assert f"{tmp_path}: the run is in stage recovery, which is not among short, long" in result.output
    assert not (tmp_path / "out").exists()
