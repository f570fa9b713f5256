"""What the launcher says to the person in front of it."""

import contextlib
import os
from pathlib import Path

TAIL_BYTES = 16_384


def say(text: str) -> None:
    """Print one message. A terminal that is gone is no reason to fail: what was started must still be stopped."""
    with contextlib.suppress(OSError):
        # Not print: a failed flush would be tried again when the interpreter ends, and change the exit code.
        os.write(1, f"[run] {text}\n".encode())


def last_lines(log: Path, count: int = 15) -> str:
    """The end of a log, indented."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - TAIL_BYTES))
            lines = stream.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        lines = []
    return "\n".join(f"    {line}" for line in lines[-count:]) or "    (its log is empty)"
