"""The launcher with the real services: it starts, restarts and stops them, and no process id outlives it.

Lists of live process ids are taken before the start, while it serves, and after the end.
"""

import os
import pty
import re
import select
import shutil
import signal
import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.free_ports import pick_free_ports
from support.launched import (
    SERVING,
    START_SECONDS,
    Launched,
    MadeRun,
    TerminalEnd,
    grpc_health,
    live_pids_of_machine,
)
from support.waiting import PATIENCE_SECONDS, wait_until
from twinspark_tools.launch.model_folder import DEMO_FOLDER

ROOT = Path(__file__).parents[3]

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


def all_pids(instance: Launched) -> set[int]:
    """What run.json says that runs, and the grammar service's compiler host."""
    run = instance.run
    hosts = [child.pid for child in psutil.Process(run["pids"]["grammar"]).children()]
    return {run["launcher_pid"], run["supervisor_pid"], *run["pids"].values(), *hosts}


def with_children(pid: int) -> set[int]:
    """A process and those it started; only the grammar service has any."""
    return {pid, *(child.pid for child in psutil.Process(pid).children())}


def check_nothing_is_left(instance: Launched, while_serving: set[int], seconds: float = 0.0) -> None:
    """Compare the list of live process ids with the one taken while the instance served.

    After an orderly end at once; where the kernel ends what a killed process leaves, within that many seconds.
    """
    deadline = time.monotonic() + seconds
    while (while_serving & live_pids_of_machine() or instance.live_pids()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert while_serving & live_pids_of_machine() == set()
    assert instance.live_pids() == set()


def read_until(screen: int, text: str, seconds: float = PATIENCE_SECONDS) -> str:
    """What a terminal shows, up to the line that holds the text."""
    shown, deadline = "", time.monotonic() + seconds
    while text not in shown or not shown.endswith("\n"):
        assert time.monotonic() < deadline, shown
        if select.select([screen], [], [], 0.2)[0]:
            shown += os.read(screen, 65536).decode()
    return shown.replace("\r\n", "\n")


def reply_of(instance: Launched) -> str:
    """A reply as soon as there is one: /health lags behind a crash by the gateway's poll, and requests get 503."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            return instance.wait_healthy().complete([1, 2, 3])
        except urllib.error.HTTPError as error:
            if error.code != 503 or time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def test_ctrl_c_leaves_no_process(tmp_path: Path, tiny_folder: Path, terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    before = live_pids_of_machine()
    with Launched(tmp_path, pick_free_ports(1)[0], tiny_folder, ranks=2, terminal=TerminalEnd(theirs)) as instance:
        serving = instance.wait_healthy().live_pids()
        assert serving.isdisjoint(before)
        assert set(service_pids(instance)) == {"grammar", "engine-0", "engine-1", "gateway"}
        # launcher, supervisord, grammar service with its compiler host, two ranks, gateway
        assert serving == all_pids(instance)
        assert len(serving) == 7
        os.write(ours, b"\x03")
        assert instance.process.wait(PATIENCE_SECONDS) == 0
        check_nothing_is_left(instance, serving)


def test_make_run_prints_its_url_and_grpc_addresses_and_ctrl_c_ends_all_of_it(
    tiny_folder: Path, terminal: tuple[int, int]
) -> None:
    ours, theirs = terminal
    before = live_pids_of_machine()
    with MadeRun(ROOT, pick_free_ports(1)[0], tiny_folder, ranks=2, terminal=TerminalEnd(theirs)) as instance:
        shown = read_until(ours, "Ctrl-C stops everything.", START_SECONDS)
        grammar, *ranks = addresses = list(instance.run["grpc"].values())
        assert re.search(rf"^\[run\] serving after \d+ s: {re.escape(instance.url)}$", shown, re.MULTILINE), shown
        assert f"[run] engine ranks: grpc {ranks[0]}, {ranks[1]}; grammar: grpc {grammar}\n" in shown
        assert [grpc_health(address) for address in addresses] == [SERVING] * 3
        serving = instance.live_pids()
        assert serving.isdisjoint(before)
        assert serving == all_pids(instance) | {instance.process.pid}
        assert len(serving) == 8
        os.write(ours, b"\x03")
        instance.process.wait(PATIENCE_SECONDS)
        assert "[run] stopped" in read_until(ours, "stopped")
        check_nothing_is_left(instance, serving)
    shutil.rmtree(instance.logs)


# make is such a leader: it takes the hang-up of its terminal and goes on waiting for what it runs.
DEAF_LEADER = ("sh", "-c", 'trap : HUP; "$@"; exit $?', "sh")


@pytest.mark.parametrize("leader", [(), DEAF_LEADER], ids=["alone", "under a deaf leader"])
def test_a_terminal_that_goes_away_leaves_no_process(
    tmp_path: Path, tiny_folder: Path, terminal: tuple[int, int], leader: tuple[str, ...]
) -> None:
    ours, theirs = terminal
    before = live_pids_of_machine()
    with Launched(tmp_path, pick_free_ports(1)[0], tiny_folder, terminal=TerminalEnd(theirs, leader)) as instance:
        serving = instance.wait_healthy().live_pids()
        assert serving.isdisjoint(before)
        assert serving == all_pids(instance) | {instance.process.pid}
        os.close(theirs)
        os.close(ours)
        assert instance.process.wait(PATIENCE_SECONDS) == 0
        check_nothing_is_left(instance, serving)


def test_a_killed_service_comes_back_alone_and_a_killed_launcher_leaves_no_process(
    tmp_path: Path, tiny_folder: Path
) -> None:
    at_first = live_pids_of_machine()
    with Launched(tmp_path, pick_free_ports(1)[0], tiny_folder, ranks=2) as instance:
        first = reply_of(instance)
        wait_until(lambda: "[run] serving after" in instance.output, lambda: instance.output)
        for num_killed, name in enumerate(("gateway", "engine-0", "engine-1", "grammar"), start=1):
            before, pid = instance.live_pids(), service_pids(instance)[name]
            assert before == all_pids(instance)
            own = with_children(pid)
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda name=name, pid=pid: service_pids(instance).get(name, pid) != pid, lambda: instance.output)  # type: ignore[misc]
            assert reply_of(instance) == first
            wait_until(lambda n=num_killed: instance.output.count("serving again") == n, lambda: instance.output)  # type: ignore[misc]
            # One process left with its children, and one came; all others are the same.
            after = instance.live_pids()
            assert (before - after, after - before) == (own, with_children(service_pids(instance)[name]))
            assert f"{name} ended (terminated by SIGKILL) and is started again" in instance.output
            grammar, *ranks = instance.run["grpc"].values()
            assert f"engine ranks: grpc {', '.join(ranks)}; grammar: grpc {grammar}\n" in instance.output
            assert grpc_health(grammar) == SERVING
        serving = instance.live_pids()
        assert serving.isdisjoint(at_first)
        instance.process.kill()
        instance.process.wait(PATIENCE_SECONDS)
        check_nothing_is_left(instance, serving, PATIENCE_SECONDS)


def test_a_killed_supervisor_ends_the_run_and_leaves_no_process(tmp_path: Path, tiny_folder: Path) -> None:
    with Launched(tmp_path, pick_free_ports(1)[0], tiny_folder) as instance:
        serving = instance.wait_healthy().live_pids()
        assert serving == all_pids(instance)
        os.kill(instance.run["supervisor_pid"], signal.SIGKILL)
        assert instance.process.wait(PATIENCE_SECONDS) == 1
        assert "the process manager ended" in instance.output
        check_nothing_is_left(instance, serving, PATIENCE_SECONDS)


def test_two_ports_serve_side_by_side_and_a_taken_port_is_named(tmp_path: Path, tiny_folder: Path) -> None:
    folders = tmp_path / "one", tmp_path / "two", tmp_path / "three"
    for folder in folders:
        folder.mkdir()
    one, two = pick_free_ports(2)
    with Launched(folders[0], one, tiny_folder) as first, Launched(folders[1], two, tiny_folder) as second:
        replies = [instance.wait_healthy().complete([5, 6, 7]) for instance in (first, second)]
        assert replies[0] == replies[1]
        with Launched(folders[2], one, tiny_folder) as third:
            assert third.process.wait(PATIENCE_SECONDS) == 1
            assert f"port {one} on 127.0.0.1 cannot be used (Address already in use)" in third.output
            assert third.live_processes() == []
        assert first.complete([5, 6, 7]) == replies[0]


def test_a_refused_checkpoint_ends_the_run_with_its_message(tmp_path: Path, tiny_folder: Path) -> None:
    broken = shutil.copytree(tiny_folder, tmp_path / "broken")
    (broken / "model-00001-of-00002.safetensors").unlink()
    with Launched(tmp_path, pick_free_ports(1)[0], broken) as instance:
        assert instance.process.wait(PATIENCE_SECONDS) == 1
        assert "engine-0 refused to start (exit status 78)" in instance.output
        assert "model-00001-of-00002.safetensors" in instance.output
        assert instance.live_processes() == []


def test_a_model_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with Launched(tmp_path, pick_free_ports(1)[0], tmp_path / "nowhere") as instance:
        assert instance.process.wait(PATIENCE_SECONDS) == 1
        assert f"MODEL={tmp_path / 'nowhere'}: no such folder" in instance.output


def test_a_model_folder_without_a_config_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    with Launched(tmp_path, pick_free_ports(1)[0], folder) as instance:
        assert instance.process.wait(PATIENCE_SECONDS) == 1
        assert f"MODEL={folder}: the folder holds no config.json" in instance.output
        assert "Errno" not in instance.output


def test_a_checkpoint_without_a_tokenizer_is_served_without_the_grammar_service(
    tmp_path: Path, tiny_folder: Path
) -> None:
    mute = shutil.copytree(tiny_folder, tmp_path / "mute")
    (mute / "tokenizer.json").unlink()
    with Launched(tmp_path, pick_free_ports(1)[0], mute) as instance:
        instance.wait_healthy()
        assert f"[run] no grammar service: {mute} has no tokenizer.json" in instance.output
        assert set(service_pids(instance)) == {"engine-0", "gateway"}


def test_without_a_model_the_demo_folder_below_the_root_is_served(tmp_path: Path, tiny_folder: Path) -> None:
    demo = tmp_path / DEMO_FOLDER
    demo.parent.mkdir(parents=True)
    demo.symlink_to(tiny_folder)
    with Launched(tmp_path, pick_free_ports(1)[0], None) as instance:
        instance.wait_healthy()
        assert Path(instance.run["model"]) == tiny_folder.resolve()


def test_make_run_without_a_model_serves_the_demo_model_of_the_repository(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    with MadeRun(ROOT, pick_free_ports(1)[0], None, terminal=TerminalEnd(theirs)) as instance:
        read_until(ours, "Ctrl-C stops everything.", START_SECONDS)
        assert Path(instance.run["model"]) == ROOT / DEMO_FOLDER
    shutil.rmtree(instance.logs)


def test_a_demo_model_that_is_not_there_is_told_with_what_to_do(tmp_path: Path) -> None:
    with Launched(tmp_path, pick_free_ports(1)[0], None) as instance:
        assert instance.process.wait(PATIENCE_SECONDS) == 1
        assert f"[run] error: the demo model is not in {DEMO_FOLDER}: " in instance.output
        assert "MODEL=folder" in instance.output
        assert instance.live_processes() == []
