"""Waiting for what must come. How long it takes says nothing: a slow or busy machine is no failure."""

import asyncio
import time
from collections.abc import Callable, Iterator

PATIENCE_SECONDS = 60.0
"""How long a test waits before it fails; a test that passes never waits for long."""
Explain = str | Callable[[], object]


def wait_until(is_true: Callable[[], object], what: Explain, seconds: float = PATIENCE_SECONDS) -> None:
    """Poll; AssertionError with what was waited for after that many seconds."""
    for _ in _polls(is_true, what, seconds):
        time.sleep(0.01)


async def eventually(is_true: Callable[[], object], what: Explain, seconds: float = PATIENCE_SECONDS) -> None:
    """Poll while the event loop goes on; AssertionError with what was waited for after that many seconds."""
    for _ in _polls(is_true, what, seconds):
        await asyncio.sleep(0.005)


def _polls(is_true: Callable[[], object], what: Explain, seconds: float) -> Iterator[None]:
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:g} s: {what if isinstance(what, str) else what()}")
        yield
