"""The folder of one running instance: logs, the files that its processes are started from, and run.json.

run.json says what runs, for people and tools on the same machine: {"url", "model", "ranks", "grpc": {name: address},
"launcher_pid", "supervisor_pid", "pids": {name: pid}}.
"""

import fcntl
import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

RUN_FILE = "run.json"


class RunFolderBusyError(Exception):
    """Another launcher of this checkout uses the port."""


def run_folder_of(port: int) -> Path:
    """Where an instance on this port keeps its files, below the working directory."""
    return Path.cwd() / "build" / "run" / str(port)


class RunFolder:
    """Held by one launcher at a time, by a lock that ends with the process."""

    def __init__(self, port: int) -> None:
        self.path = run_folder_of(port)
        self._port = port
        self._lock: TextIO | None = None

    def open(self) -> None:
        """Take the folder and drop what a past run left. Raises RunFolderBusyError."""
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = (self.path / "lock").open("w", encoding="utf-8")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunFolderBusyError(
                f"port {self._port} is in use by another `make run`; choose another with PORT=<number>"
            ) from None
        for left in (*self.path.glob("*.log"), *self.path.glob("*.json")):
            left.unlink()

    def log(self, name: str) -> Path:
        """The log of a process."""
        return self.path / f"{name}.log"

    def write_child(
        self, name: str, argv: Sequence[str], environment: Mapping[str, str], death_signal: signal.Signals
    ) -> Path:
        """The file from which child.py starts a process. supervisord's own children check that it is their parent."""
        spec = {
            "argv": list(argv),
            "environment": dict(environment),
            "death_signal": int(death_signal),
            "is_parent": name == "supervisord",
        }
        path = self.path / f"{name}.json"
        path.write_text(json.dumps(spec, indent=2), encoding="utf-8")
        path.chmod(0o600)
        return path

    def write_run(self, content: Mapping[str, Any]) -> None:
        """Replace run.json at once, so that a reader never sees half of it."""
        draft = self.path / f"{RUN_FILE}.{os.getpid()}"
        draft.write_text(json.dumps(content, indent=2), encoding="utf-8")
        draft.replace(self.path / RUN_FILE)

    def drop_run(self) -> None:
        """Nothing runs any more."""
        (self.path / RUN_FILE).unlink(missing_ok=True)
