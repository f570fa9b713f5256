"""Every gate passes on a sound server and fails on a faulty one, through HTTP, run as `make gates` runs it."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.gate_faults import GATE_FAULTS, GateFault
from support.gated_server import GatedServer, gated_server
from twinspark_tools.gates.catalog import GATES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SKIPPED = {"exact", "resumed", "ranks", "reference"}
ROW = re.compile(r"(\S+) +(passed|failed|skipped) +\d+\.\d s  (\S.*)")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, short_folder: Path) -> Iterator[GatedServer]:
    """One rank with the tiny random checkpoint, and chunks that short prompts exceed."""
    sizes = {"CHUNK_TOKENS_ALONE": "192", "CHUNK_TOKENS_BESIDE_DECODERS": "128", "SHORT_PROMPT_TOKENS": "64"}
    with gated_server(tmp_path_factory.mktemp("server"), short_folder, **sizes) as found:
        yield found


@pytest.fixture(scope="module")
def sound(server: GatedServer) -> subprocess.CompletedProcess[str]:
    """All gates on the server as it is, for the first time."""
    return server.run_gates()


def read_rows(ended: subprocess.CompletedProcess[str]) -> dict[str, tuple[str, str]]:
    """Verdict and detail of each gate of a table that is complete: two headlines, the rows, and their count."""
    head, header, *lines, count = ended.stdout.splitlines()
    assert re.fullmatch(r"gates of \S+, 1x-float32-\w+, at http://\S+", head), ended.stdout
    assert header.split() == ["gate", "verdict", "time", "what", "was", "found"]
    rows = [ROW.fullmatch(line) for line in lines]
    assert all(rows), ended.stdout
    found = {row[1]: (row[2], row[3]) for row in rows if row}
    verdicts = [verdict for verdict, _ in found.values()]
    assert count == ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in ("passed", "failed", "skipped"))
    return found


def test_a_sound_server_passes_and_its_transcripts_are_recorded_first(
    server: GatedServer, sound: subprocess.CompletedProcess[str]
) -> None:
    rows = read_rows(sound)
    assert list(rows) == list(GATES)
    assert {name for name, (verdict, _) in rows.items() if verdict == "skipped"} == SKIPPED | {"transcripts"}
    assert {verdict for verdict, _ in rows.values()} == {"passed", "skipped"}, sound.stdout
    assert "14 replies recorded" in rows["transcripts"][1]
    assert sound.returncode == 0
    again = server.run_gates("transcripts")
    assert read_rows(again)["transcripts"][0] == "passed"
    assert again.stdout.endswith("\n1 passed, 0 failed, 0 skipped\n")
    assert again.returncode == 0


@pytest.mark.parametrize("case", GATE_FAULTS, ids=[case.fault.name.replace(" ", "-") for case in GATE_FAULTS])
@pytest.mark.usefixtures("sound")
def test_a_planted_fault_is_found(server: GatedServer, case: GateFault) -> None:
    with server.fault(case.fault.name):
        ended = server.run_gates(case.gate)
    assert ended.stdout.endswith("\n0 passed, 1 failed, 0 skipped\n"), ended.stdout + ended.stderr
    assert case.says in read_rows(ended)[case.gate][1], ended.stdout
    assert ended.returncode == 1


def test_every_gate_that_runs_has_a_planted_fault() -> None:
    assert {case.gate for case in GATE_FAULTS} == GATES.keys() - SKIPPED
