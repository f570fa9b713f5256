"""What the launcher says to the person in front of it."""

import contextlib
import os
import select
from pathlib import Path

TAIL_BYTES = 16_384


def say(text: str) -> None:
    """Print one message. A terminal that is gone is no reason to fail: what was started must still be stopped."""
    with contextlib.suppress(OSError):
        # Not print: a failed flush would be tried again when the interpreter ends, and change the exit code.
        os.write(1, f"[run] {text}\n".encode())


class Terminal:
    """The terminal that the launcher was started from, if it was.

    SIGHUP alone does not tell that it is gone: the kernel sends it to the session's leader, and a leader such as make
    takes it, keeps waiting for us and passes nothing on.
    """

    def __init__(self) -> None:
        self._poll = select.poll()
        for descriptor in (0, 1, 2):
            if os.isatty(descriptor):
                # No event is asked for: a hang-up is always reported.
                self._poll.register(descriptor, 0)

    def is_gone(self) -> bool:
        """Whether it was closed."""
        return any(event & (select.POLLHUP | select.POLLERR) for _, event in self._poll.poll(0))


def last_lines(log: Path, count: int = 15) -> str:
    """The end of a log, indented."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, log.stat().st_size - TAIL_BYTES))
            lines = stream.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        lines = []
    return "\n".join(f"    {line}" for line in lines[-count:]) or "    (its log is empty)"
