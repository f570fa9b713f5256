"""How the step thread's end becomes the process's exit code."""

import threading

import pytest

from twinspark_engine.errors import RanksDifferError
from twinspark_engine.kv_cache.memory_rule import MemoryBudgetError
from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason
from twinspark_engine.step_thread import StepThread

REFUSED = CheckpointError(CheckpointReason.TENSOR_MISSING, "x is missing")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (None, 0),
        (RanksDifferError(["slots"]), 78),
        (REFUSED, 78),
        (MemoryBudgetError("too little"), 78),
        (ValueError("unexpected"), 1),
    ],
)
async def test_the_exit_code_says_whether_starting_again_is_of_use(
    error: Exception | None, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda failure: seen.append(failure.exc_value))

    def run() -> None:
        if error is not None:
            raise error

    thread = StepThread(run)
    thread.start()
    assert await thread.ended == code
    thread._thread.join()
    assert seen == ([error] if code == 1 else [])


async def test_a_refusal_ends_the_process_while_the_thread_still_runs() -> None:
    release = threading.Event()

    def run() -> None:
        release.wait()

    thread = StepThread(run)
    thread.start()
    thread.refuse()
    assert await thread.ended == 78
    release.set()
    thread._thread.join()
