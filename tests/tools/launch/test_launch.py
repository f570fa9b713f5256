"""The launcher with the real services: it starts, restarts and stops them, and no process id outlives it."""

import os
import pty
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.free_ports import pick_free_ports
from support.launched import Launched, TerminalEnd, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a pseudo terminal: ours, and the one that programs run in."""
    ours, theirs = pty.openpty()
    yield ours, theirs
    for end in (ours, theirs):
        try:
            os.close(end)
        except OSError:
            continue


def service_pids(instance: Launched) -> dict[str, int]:
    pids: dict[str, int] = instance.run["pids"]
    return pids


def test_ctrl_c_leaves_no_process(tmp_path: Path, tiny_folder: Path, terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    before = set(psutil.pids())
    with Launched(tmp_path, pick_free_ports(1)[0], tiny_folder, ranks=2, terminal=TerminalEnd(theirs)) as instance:
        assert {process.pid for process in instance.wait_healthy().live_processes()}.isdisjoint(before)
        # launcher, supervisord, two ranks, gateway
        assert len(instance.live_processes()) == 5
        assert set(service_pids(instance)) == {"engine-0", "engine-1", "gateway"}
        os.write(ours, b"\x03")
        assert instance.process.wait(40) == 0
        assert instance.live_processes() == []


# make is such a leader: it takes the hang-up of its terminal and goes on waiting for what it runs.
DEAF_LEADER = ("sh", "-c", 'trap : HUP; "$@"; exit $?', "sh")


@pytest.mark.parametrize("leader", [(), DEAF_LEADER], ids=["alone", "under a deaf leader"])
def test_a_terminal_that_goes_away_leaves_no_process(
    tmp_path: Path, tiny_folder: Path, terminal: tuple[int, int], leader: tuple[str, ...]
) -> None:
    ours, theirs = terminal
    with Launched(tmp_path, pick_free_ports(1)[0], tiny_folder, terminal=TerminalEnd(theirs, leader)) as instance:
        instance.wait_healthy()
        os.close(theirs)
        os.close(ours)
        assert instance.process.wait(40) == 0
        assert instance.live_processes() == []


def test_a_killed_service_comes_back_and_a_killed_launcher_leaves_no_process(tmp_path: Path, tiny_folder: Path) -> None:
    with Launched(tmp_path, pick_free_ports(1)[0], tiny_folder) as instance:
        first = instance.wait_healthy().complete([1, 2, 3])
        for name in ("gateway", "engine-0"):
            pid = service_pids(instance)[name]
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda name=name, pid=pid: service_pids(instance).get(name, pid) != pid, 20)  # type: ignore[misc]
            assert instance.wait_healthy().complete([1, 2, 3]) == first
            assert f"{name} ended (terminated by SIGKILL) and is started again" in instance.output
        assert len(instance.live_processes()) == 4
        instance.process.kill()
        instance.wait_gone()


def test_a_killed_supervisor_ends_the_run_and_leaves_no_process(tmp_path: Path, tiny_folder: Path) -> None:
    with Launched(tmp_path, pick_free_ports(1)[0], tiny_folder) as instance:
        instance.wait_healthy()
        os.kill(instance.run["supervisor_pid"], signal.SIGKILL)
        assert instance.process.wait(20) == 1
        assert "the process manager ended" in instance.output
        instance.wait_gone(5)


def test_two_ports_serve_side_by_side_and_a_taken_port_is_named(tmp_path: Path, tiny_folder: Path) -> None:
    folders = tmp_path / "one", tmp_path / "two", tmp_path / "three"
    for folder in folders:
        folder.mkdir()
    one, two = pick_free_ports(2)
    with Launched(folders[0], one, tiny_folder) as first, Launched(folders[1], two, tiny_folder) as second:
        replies = [instance.wait_healthy().complete([5, 6, 7]) for instance in (first, second)]
        assert replies[0] == replies[1]
        with Launched(folders[2], one, tiny_folder) as third:
            assert third.process.wait(20) == 1
            assert f"port {one} on 127.0.0.1 cannot be used (Address already in use)" in third.output
            assert third.live_processes() == []
        assert first.complete([5, 6, 7]) == replies[0]


def test_a_refused_checkpoint_ends_the_run_with_its_message(tmp_path: Path, tiny_folder: Path) -> None:
    broken = shutil.copytree(tiny_folder, tmp_path / "broken")
    (broken / "model-00001-of-00002.safetensors").unlink()
    with Launched(tmp_path, pick_free_ports(1)[0], broken) as instance:
        assert instance.process.wait(60) == 1
        assert "engine-0 refused to start (exit status 78)" in instance.output
        assert "model-00001-of-00002.safetensors" in instance.output
        assert instance.live_processes() == []


def test_a_model_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with Launched(tmp_path, pick_free_ports(1)[0], tmp_path / "nowhere") as instance:
        assert instance.process.wait(20) == 1
        assert f"MODEL={tmp_path / 'nowhere'}: no such folder" in instance.output


def test_the_default_model_is_made_once(tmp_path: Path) -> None:
    program = (
        "from pathlib import Path; from twinspark_tools.launch.default_model import ensure_default_model; "
        "print(ensure_default_model(Path('build')).stat().st_ino, 'torch' in __import__('sys').modules)"
    )
    answers = [
        subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    ]
    assert "checkpoint: making a tiny random one" in answers[0]
    assert "making" not in answers[1]
    assert answers[0].splitlines()[-1] == answers[1].splitlines()[-1]
    assert answers[0].endswith("False\n")
    assert len(list((tmp_path / "build").iterdir())) == 1
