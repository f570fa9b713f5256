"""The profile of a decode step: every op is named, and the shares are of the whole."""

import json
from pathlib import Path

import pytest
import torch

from twinspark_tools.bench import step
from twinspark_tools.tiny_checkpoint import SHAPES, write_checkpoint


@pytest.mark.parametrize("streams", [1, 3])
def test_the_report_names_ops_and_their_shares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], streams: int
) -> None:
    threads = torch.get_num_threads()
    write_checkpoint(tmp_path, SHAPES["tiny"], 0)
    step.main(tmp_path, ranks=2, streams=streams, prompt_tokens=70, steps=2)
    torch.set_num_threads(threads)
    report = json.loads(capsys.readouterr().out)
    shares = {entry["op"]: entry["share"] for entry in report["ops"]}
    assert report["streams"] == streams
    assert report["cpu_ms_a_step"] > 0
    assert {"linear", "hyper_connection", "kda", "experts", "latent_attention", "model"} <= shares.keys()
    assert abs(sum(shares.values()) - 1) < 0.01


def test_files_belong_to_their_op_folder() -> None:
    assert step.name_op("/a/twinspark_kernels/kda/chunk_reference.py") == "kda"
    assert step.name_op("/a/twinspark_kernels/sigmoid.py") == "sigmoid"
    assert step.name_op("/a/twinspark_engine/model/model.py") == "model"
