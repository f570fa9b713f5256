"""A run on small shapes: it reports, saves, resumes, and keeps to its time."""

import math
from pathlib import Path

import pytest
import torch

from support.vision_models import SMALL_BATCH, SMALL_TOWER
from twinspark_demo.checkpoint.shards import load_shards
from twinspark_demo.pictures import paint
from twinspark_demo.rows.tokenizer import COMMITTED_TOKENIZER
from twinspark_demo.training.cluster import Cluster
from twinspark_demo.training.vision import run as run_module
from twinspark_demo.training.vision.model import VisionModel
from twinspark_demo.training.vision.run import VisionOptions, VisionRun


@pytest.fixture(autouse=True)
def small_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which every kind has conversations that fit."""
    monkeypatch.setattr(paint, "PICTURE_SIDES", (112, 120))
    monkeypatch.setattr(paint, "_SMALL_SIDE", 120)


def options(folder: Path, steps: int, seconds: float = math.inf) -> VisionOptions:
    return VisionOptions(
        folder,
        COMMITTED_TOKENIZER,
        SMALL_BATCH,
        0,
        steps,
        report_every=2,
        save_every=2,
        final_batches=1,
        seconds=seconds,
    )


def test_a_run_reports_what_it_reads_and_its_shards_go_on(
    vision_model: VisionModel, alone: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    VisionRun(vision_model, alone, options(tmp_path, 2)).run()
    lines = capsys.readouterr().out.splitlines()
    assert any("step 2  answer loss " in line and "held out: number " in line for line in lines)
    assert [line.split()[1] for line in lines[-4:]] == ["number", "colour", "count", "two"]
    tensors, place = load_shards(tmp_path)
    assert (place.stage, place.step) == ("vision", 2)
    other = VisionModel(SMALL_TOWER, vision_model.language_model, seed=9)
    other.load(tensors)
    for name, value in other.tensors().items():
        torch.testing.assert_close(value, vision_model.tensors()[name], rtol=2**-8, atol=0)
    VisionRun(other, alone, options(tmp_path, 4), first_step=2).run()
    assert load_shards(tmp_path)[1].step == 4
    assert not any(name.startswith("language_model") for name in tensors)


def test_a_run_makes_fewer_steps_if_all_would_take_too_long(
    vision_model: VisionModel, alone: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "_MEASURED_FROM", 1)
    monkeypatch.setattr(run_module, "_MEASURED_TO", 2)
    VisionRun(vision_model, alone, options(tmp_path, 500, seconds=0.001)).run()
    assert load_shards(tmp_path)[1].step == 3
