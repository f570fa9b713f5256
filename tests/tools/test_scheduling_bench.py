"""The share of the scheduler in a step: of the whole, and of real steps."""

import json
from pathlib import Path

import pytest
import torch

from twinspark_tools.bench import scheduling
from twinspark_tools.tiny_checkpoint import SHAPES, write_checkpoint


def test_the_report_counts_every_phase_of_real_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    threads = torch.get_num_threads()
    write_checkpoint(tmp_path, SHAPES["tiny"], 0)
    scheduling.main(tmp_path, streams=3, prompt_tokens=70, steps=2)
    torch.set_num_threads(threads)
    text = capsys.readouterr().out
    report = json.loads(text[text.index("{\n") :])  # after log lines
    assert set(report["cpu_us_a_step"]) == set(scheduling.PHASES)
    assert report["cpu_us_a_step"]["execute"] > 0
    assert 0 < report["scheduler_share"] < 1


def test_the_share_is_that_of_all_phases_but_the_execution() -> None:
    times = iter([0.0, 1.0, 1.0, 8.0, 8.0, 10.0])
    clock = scheduling.PhaseClock(lambda: next(times))
    for name in ("plan", "execute", "result"):
        with clock.phase(name):
            pass
    report = scheduling.build_report(clock, 1, 2)
    assert report["cpu_us_a_step"]["execute"] == 3_500_000
    assert report["scheduler_share"] == 0.3
