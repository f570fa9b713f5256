"""The program refuses at once what it could not carry out."""

from pathlib import Path

import pytest
import typer

from twinspark_demo.training.__main__ import main

NO_STEPS = ["short=0", "long=0", "recovery=0"]


def test_a_plan_without_a_stage_is_refused(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="leaves no stage"):
        main(out=tmp_path, steps=NO_STEPS)


def test_a_run_cannot_resume_and_begin(tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match="only one of them"):
        main(out=tmp_path, resume=tmp_path, begin_with=tmp_path)
