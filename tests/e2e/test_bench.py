"""The benchmark client against the running instance: a whole report, never a figure asserted."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.free_ports import pick_free_ports
from support.launched import Launched

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def bench(folder: Path, url: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "twinspark_tools.bench", "--base-url", url, *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_report_has_every_measure_and_the_memory_of_every_process(instance: Launched) -> None:
    few = ("--runs", "1", "--decode-tokens", "4", "--streams", "2", "--turns", "2")
    sizes = (*few, "--prefill-tokens", "64,40000", "--beside-tokens", "5000")
    ended = bench(instance.folder, instance.url, *sizes)
    assert ended.returncode == 0, ended.stderr
    report: dict[str, Any] = json.loads(ended.stdout)
    measures = {record["measure"]: record for record in report["measures"]}
    assert set(measures) == {
        "decode, 1 stream",
        "prefill, 64 tokens",
        "prefill, 40000 tokens",
        "decode, 2 streams",
        "replay, 2 turns",
        "short beside 5000 tokens",
    }
    # Longer than the context: reported, and the others went on.
    assert "answered 400" in measures.pop("prefill, 40000 tokens")["error"]
    assert all(record.get("tokens_per_second", 1) > 0 for record in measures.values())
    assert measures["replay, 2 turns"]["prompt_tokens"] > 120
    assert measures["decode, 2 streams"]["times_one_stream"] > 0
    beside = measures["short beside 5000 tokens"]
    assert beside["arrivals"] > 0
    # 5,000 tokens are two chunks; the median of the arrivals is no larger than the slowest.
    assert 0 < beside["chunk_times"] <= beside["slowest_chunk_times"]
    assert beside["slowest_first_token_ms"] == pytest.approx(beside["slowest_chunk_times"] * beside["chunk_ms"])
    processes = {record["process"]: record for record in report["processes"]}
    assert set(processes) == {"engine-0", "engine-1", "gateway", "grammar", "grammar, child"}
    assert [processes[name]["has_torch"] for name in ("engine-0", "gateway")] == [True, False]
    assert report["fingerprint"].startswith("2x-float32-")
    assert report["versions"]["torch"] != "not installed"
    for name in (*measures, *processes, report["fingerprint"]):
        assert name in ended.stderr


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{pick_free_ports(1)[0]}"
    ended = bench(tmp_path, url)
    assert ended.returncode == 1
    assert ended.stderr.endswith(f"no server answers at {url}: start one with `make run`, or give BASE_URL=\n")
