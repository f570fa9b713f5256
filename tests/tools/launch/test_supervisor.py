"""supervisord's log is read line by line; its configuration survives odd paths."""

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from support.waiting import wait_until
from twinspark_tools.launch.child import PARENT_VARIABLE
from twinspark_tools.launch.run_folder import RunFolder, RunFolderBusyError
from twinspark_tools.launch.services import Instance, Service, build_services
from twinspark_tools.launch.supervisor import Event, Exited, Spawned, Supervisor, parse_log_line


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ("2026-01-02 03:04:05,678 INFO spawned: 'engine-0' with pid 12", Spawned("engine-0", 12)),
        (
            "2026-01-02 03:04:05,678 WARN exited: gateway (terminated by SIGKILL; not expected)",
            Exited("gateway", "terminated by SIGKILL", False),
        ),
        (
            "2026-01-02 03:04:05,678 INFO exited: engine-1 (exit status 78; expected)",
            Exited("engine-1", "exit status 78", True),
        ),
        ("2026-01-02 03:04:05,678 INFO stopped: engine-1 (exit status 0)", None),
        ("2026-01-02 03:04:05,678 INFO supervisord started with pid 7", None),
    ],
)
def test_starts_and_ends_are_read_from_the_log(line: str, event: Event | None) -> None:
    assert parse_log_line(line) == event


def test_settings_of_the_caller_go_through_and_addresses_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWINSPARK_ENGINE_THREADS", "3")
    monkeypatch.setenv("TWINSPARK_ENGINE_PORT", "7100")
    services = build_services(Instance(8000, 2, tmp_path, "float32"))
    assert [service.name for service in services] == ["engine-0", "engine-1", "gateway"]
    assert services[0].environment["TWINSPARK_ENGINE_GRAMMAR"] == ""
    (tmp_path / "tokenizer.json").touch()
    services = build_services(Instance(8000, 2, tmp_path, "float32"))
    grammar, first, second, gateway = (service.environment for service in services)
    assert "TWINSPARK_ENGINE_THREADS" not in first
    ports = [first["TWINSPARK_ENGINE_PORT"], second["TWINSPARK_ENGINE_PORT"]]
    asked = grammar["TWINSPARK_GRAMMAR_PORT"]
    assert len({*ports, asked, "7100", "8000"}) == 5
    assert (first["TWINSPARK_ENGINE_PEERS"], second["TWINSPARK_ENGINE_PEERS"]) == (f"127.0.0.1:{ports[1]}", "")
    assert [service.grpc for service in services] == [f"127.0.0.1:{port}" for port in (asked, *ports)] + [""]
    assert gateway["TWINSPARK_GATEWAY_ENGINE"] == f"127.0.0.1:{ports[0]}"
    asking = (
        first["TWINSPARK_ENGINE_GRAMMAR"],
        second["TWINSPARK_ENGINE_GRAMMAR"],
        gateway["TWINSPARK_GATEWAY_GRAMMAR"],
    )
    assert asking == (f"127.0.0.1:{asked}",) * 3


def test_a_run_folder_has_one_launcher_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    held = RunFolder(8000)
    held.open()
    with pytest.raises(RunFolderBusyError, match="port 8000 is in use by another"):
        RunFolder(8000).open()
    RunFolder(8001).open()


def is_gone(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def test_odd_paths_and_values_reach_the_services_and_refusals_are_final(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "100% odd 'path'"
    odd.mkdir()
    monkeypatch.chdir(odd)
    folder = RunFolder(8000)
    folder.open()
    value = "100% \"odd\", 'value'; %(here)s"
    writes = "import os, time; open('value.txt', 'w').write(os.environ['VALUE']); time.sleep(60)"
    services = [
        Service("writer", "engine", (sys.executable, "-c", writes), {"VALUE": value}),
        Service("refuser", "gateway", (sys.executable, "-c", "raise SystemExit(78)"), {}),
        Service("failing", "engine", (sys.executable, "-c", "raise SystemExit(1)"), {}),
    ]
    supervisor = Supervisor(folder, services)
    supervisor.start()
    events: list[Event] = []
    written = folder.path / "value.txt"

    def seen() -> bool:
        events.extend(supervisor.events())
        return written.exists() and written.read_text() == value and len(ends("failing")) >= 2

    def ends(name: str) -> list[Event]:
        return [event for event in events if isinstance(event, Exited) and event.name == name]

    try:
        wait_until(seen, lambda: events)
        assert ends("refuser") == [Exited("refuser", "exit status 78", True)]
        assert ends("failing")[0] == Exited("failing", "exit status 1", False)
        writer = next(event for event in events if isinstance(event, Spawned) and event.name == "writer")
        assert psutil.pid_exists(writer.pid)
    finally:
        supervisor.kill()
    wait_until(lambda: is_gone(writer.pid), "the kernel kills what supervisord leaves")


def test_a_child_whose_parent_is_gone_does_not_start(tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    argv = [sys.executable, "-c", "print('started')"]
    spec.write_text(json.dumps({"argv": argv, "environment": {}, "death_signal": 9, "is_parent": False}))
    command = [sys.executable, "-m", "twinspark_tools.launch.child", str(spec)]
    for parent, expected in ((os.getpid(), "started\n"), (1, "")):
        environment = {**os.environ, PARENT_VARIABLE: str(parent)}
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert ended.stdout == expected
        assert ("the parent process 1 is gone" in ended.stderr) == (expected == "")
