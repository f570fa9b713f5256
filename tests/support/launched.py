"""A whole instance started by the launcher or by `make run`, and the list of its live processes."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import grpc
import psutil
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from support.waiting import PATIENCE_SECONDS, wait_until

START_SECONDS = 120.0
SERVING = HealthCheckResponse.SERVING
MARK = "LAUNCHED_BY_TEST"
CHECKED = {"TWINSPARK_ENGINE_CHECK_CACHE": "true"}
"""Ranks compare the books of their KV cache after every step."""
FROM_AN_OUTER_MAKE = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES"}


@dataclass(frozen=True)
class TerminalEnd:
    """Where a launcher runs as in a terminal; its output goes there."""

    descriptor: int
    leader: Sequence[str] = ()
    """A command that runs the launcher, given as its arguments, and leads the session; none: it leads itself."""


class Launched:
    """The launcher in a folder of its own; model None: what it serves by default.

    All its processes inherit a mark in the environment.
    """

    def __init__(
        self,
        folder: Path,
        port: int,
        model: Path | None,
        ranks: int = 1,
        environment: dict[str, str] | None = None,
        terminal: TerminalEnd | None = None,
        dtype: str = "float32",
    ) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.folder = folder
        self._mark = uuid.uuid4().hex
        self._output = None if terminal else folder / "output.txt"
        end = None if terminal is None else terminal.descriptor
        own = {name: value for name, value in os.environ.items() if name not in FROM_AN_OUTER_MAKE}
        with contextlib.ExitStack() as files:
            output = files.enter_context(self._output.open("wb")) if self._output else end
            self.process = subprocess.Popen(
                [*(terminal.leader if terminal else ()), *self._command(model, ranks, dtype)],
                cwd=folder,
                env={**own, **CHECKED, MARK: self._mark, **(environment or {})},
                stdin=subprocess.DEVNULL if end is None else end,
                stdout=output,
                stderr=subprocess.STDOUT if end is None else end,
                start_new_session=True,
                preexec_fn=None if terminal is None else take_terminal,
            )

    def _command(self, model: Path | None, ranks: int, dtype: str) -> list[str]:
        argv = [sys.executable, "-m", "twinspark_tools.launch", "--port", str(self.port), "--ranks", str(ranks)]
        return [*argv, *([] if model is None else ["--model", str(model)]), "--dtype", dtype]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it, in whatever state a failed test left it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(30)
        for process in self.live_processes():
            process.kill()

    @property
    def output(self) -> str:
        """What the launcher has said, unless it speaks to a terminal."""
        return self._output.read_text(encoding="utf-8") if self._output else ""

    @property
    def logs(self) -> Path:
        """Folder of the services' logs."""
        return self.folder / "build" / "run" / str(self.port)

    @property
    def run(self) -> dict[str, Any]:
        """run.json."""
        content: dict[str, Any] = json.loads((self.logs / "run.json").read_text(encoding="utf-8"))
        return content

    def environment_of(self, service: str) -> dict[str, str]:
        """What the launcher adds to a service's environment."""
        content = (self.logs / f"{service}.json").read_text(encoding="utf-8")
        environment: dict[str, str] = json.loads(content)["environment"]
        return environment

    def live_processes(self) -> list[psutil.Process]:
        """Every process on this machine that carries the mark or descends from what was started, and is no zombie."""
        tree = set()
        with contextlib.suppress(psutil.Error):
            tree = {process.pid for process in psutil.Process(self.process.pid).children(recursive=True)}
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                is_ours = process.pid in tree or process.environ().get(MARK) == self._mark
                if is_ours and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    def live_pids(self) -> set[int]:
        """Process ids of `live_processes`."""
        return {process.pid for process in self.live_processes()}

    def wait_healthy(self) -> Self:
        """Until /health is ok and the grammar service serves, if there is one."""
        wait_until(self.is_healthy, lambda: self.output, START_SECONDS)
        grammar = self.run["grpc"].get("grammar")
        wait_until(lambda: not grammar or grpc_health(grammar) == SERVING, lambda: self.output, START_SECONDS)
        return self

    def is_healthy(self) -> bool:
        """Whether /health answers 200 now."""
        assert self.process.poll() is None, self.output
        try:
            with urllib.request.urlopen(f"{self.url}/health", timeout=2) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False

    def complete(self, prompt: list[int], max_tokens: int = 4) -> str:
        """Text of a greedy completion."""
        body = {"prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "ignore_eos": True}
        request = urllib.request.Request(
            f"{self.url}/v1/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as response:
            text: str = json.loads(response.read())["choices"][0]["text"]
        return text


class MadeRun(Launched):
    """The same through `make run`, which only runs in the root of the repository."""

    def _command(self, model: Path | None, ranks: int, dtype: str) -> list[str]:
        return ["make", "run", f"PORT={self.port}", f"RANKS={ranks}", f"MODEL={model or ''}", f"DTYPE={dtype}"]


def grpc_health(address: str) -> int:
    """What a gRPC server says of its health; -1 where none answers."""
    with grpc.insecure_channel(address) as channel:
        try:
            return int(HealthStub(channel).Check(HealthCheckRequest(), timeout=10).status)
        except grpc.RpcError:
            return -1


def live_pids_of_machine() -> set[int]:
    """Every process id of this machine, without zombies."""
    return {
        process.pid for process in psutil.process_iter(["status"]) if process.info["status"] != psutil.STATUS_ZOMBIE
    }


def take_terminal() -> None:
    """In the child: make its stdin the controlling terminal of its session, as a terminal program does."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
