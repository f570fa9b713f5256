"""supervisord as a child: its configuration, its start, and what its log says happened."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from twinspark_tools.launch.child import PARENT_VARIABLE
from twinspark_tools.launch.run_folder import RunFolder
from twinspark_tools.launch.services import ENGINE_GROUP, GATEWAY_GROUP, GRAMMAR_GROUP, Service

FINAL_EXIT_CODES = (2, 78)
"""A service that ends with one of these refused its environment or its checkpoint: it is not started again."""

STOP_SECONDS = 10
"""supervisord kills a process this long after SIGTERM. Longer than the services' own drain."""

NAME = "supervisord"

PRIORITIES = {GRAMMAR_GROUP: 5, ENGINE_GROUP: 10, GATEWAY_GROUP: 20}
"""A higher number starts later and stops earlier."""


@dataclass(frozen=True, slots=True)
class Spawned:
    """A process was started."""

    name: str
    pid: int


@dataclass(frozen=True, slots=True)
class Exited:
    """A process ended by itself; unless `is_final`, supervisord starts it again."""

    name: str
    how: str
    is_final: bool


Event = Spawned | Exited

_SPAWNED = re.compile(r"spawned: '(?P<name>[^']+)' with pid (?P<pid>\d+)")
_EXITED = re.compile(r"exited: (?P<name>\S+) \((?P<how>.*); (?P<kind>expected|not expected)\)")


def parse_log_line(line: str) -> Event | None:
    """What a line of supervisord's log reports, if it is one of the two that matter."""
    if found := _SPAWNED.search(line):
        return Spawned(found["name"], int(found["pid"]))
    if found := _EXITED.search(line):
        return Exited(found["name"], found["how"], found["kind"] == "expected")
    return None


class Supervisor:
    """Started and stopped by the launcher, from its one thread."""

    def __init__(self, folder: RunFolder, services: Sequence[Service]) -> None:
        self._folder = folder
        self._services = services
        self._process: subprocess.Popen[bytes] | None = None
        self._log: BinaryIO | None = None

    def start(self) -> int:
        """Start supervisord, which starts the services; its process id. It has a session of its own: signals of the
        terminal reach the launcher only, and SIGHUP would make supervisord start everything anew."""
        config = self._write_config()
        argv = [sys.executable, "-m", "supervisor.supervisord", "--nodaemon", "--silent", "-c", config]
        spec = self._folder.write_child(NAME, argv, {}, signal.SIGTERM)
        self._folder.log(NAME).touch()
        self._log = self._folder.log(NAME).open("rb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "twinspark_tools.launch.child", str(spec)],
            cwd=self._folder.path,
            env={**os.environ, PARENT_VARIABLE: str(os.getpid())},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._folder.log("supervisord-errors").open("wb"),
            start_new_session=True,
        )
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether supervisord lives."""
        return self._process is not None and self._process.poll() is None

    def events(self) -> Iterator[Event]:
        """What happened since the last call."""
        while self._log is not None and (line := self._log.readline()):
            if not line.endswith(b"\n"):
                self._log.seek(-len(line), os.SEEK_CUR)
                return
            if event := parse_log_line(line.decode(errors="replace")):
                yield event

    def ask_to_stop(self) -> None:
        """SIGTERM: the gateway stops first, then all engine ranks at once, then the grammar service."""
        if self._process is not None and self.is_running:
            self._process.terminate()

    def kill(self) -> None:
        """SIGKILL: the kernel then kills the services."""
        if self._process is not None and self.is_running:
            self._process.kill()
            self._process.wait()

    def _write_config(self) -> str:
        sections = [
            "[supervisord]",
            f"logfile={NAME}.log",
            "logfile_maxbytes=0",
            f"pidfile={NAME}.pid",
            "loglevel=info",
        ]
        for service in self._services:
            sections += self._program(service)
        groups = dict.fromkeys(service.group for service in self._services)
        for group in groups:
            names = [service.name for service in self._services if service.group == group]
            sections += [f"[group:{group}]", f"programs={','.join(names)}", f"priority={PRIORITIES[group]}"]
        path = self._folder.path / f"{NAME}.conf"
        path.write_text("\n".join(sections) + "\n", encoding="utf-8")
        return path.name

    def _program(self, service: Service) -> list[str]:
        spec = self._folder.write_child(service.name, service.argv, service.environment, signal.SIGKILL)
        command = shlex.join([sys.executable, "-m", "twinspark_tools.launch.child", spec.name]).replace("%", "%%")
        return [
            f"[program:{service.name}]",
            f"command={command}",
            f"stdout_logfile={service.name}.log",
            "stdout_logfile_maxbytes=20MB",
            "stdout_logfile_backups=1",
            "redirect_stderr=true",
            "autorestart=unexpected",
            f"exitcodes={','.join(str(code) for code in FINAL_EXIT_CODES)}",
            # 0: each end counts as one, also a quick one; the launcher decides when to give up.
            "startsecs=0",
            f"stopwaitsecs={STOP_SECONDS}",
        ]
