"""The loop reads free memory where a request waits beside others, and what other ranks have as it last heard."""

import threading
import time
from collections.abc import Sequence

import pytest

from support.hash_runner import HashRunner
from support.waiting import wait_until
from twinspark_engine.kv_cache.memory_rule import AdmissionRule
from twinspark_engine.loop import EngineLoop, Outcome, Stop, Submit
from twinspark_engine.memory import MemoryAccount
from twinspark_engine.ranks.group import LoadedRank, SoloGroup
from twinspark_engine.request import Limits, Request, SamplingParams
from twinspark_engine.scheduler.events import Admitted, Finished, RequestEvent
from twinspark_engine.scheduler.limits import SchedulerLimits
from twinspark_engine.scheduler.scheduler import Scheduler
from twinspark_engine.stats import EngineState

ADMIT_BYTES = 2**20
PLENTY = 2**30
NAMES = ("a", "b", "c")


class Group(SoloGroup):
    """Rank 0 and one other, which has this much free."""

    def __init__(self, free_bytes: int) -> None:
        self.free_bytes = free_bytes

    def collect_memory(self) -> list[MemoryAccount]:
        return [MemoryAccount(1, 1, PLENTY, self.free_bytes, {})]


class Order:
    """Who was admitted and who finished, in order."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.is_serving = False

    def on_outcomes(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            assert isinstance(outcome, RequestEvent)
            if isinstance(outcome.event, Admitted | Finished):
                self.events.append((type(outcome.event).__name__, outcome.request_id))

    def on_state(self, state: EngineState) -> None:
        self.is_serving = state is EngineState.SERVING


def run_three(own_bytes: int, other_bytes: int) -> list[tuple[str, str]]:
    """Three requests that arrive together, on two ranks with this much free."""
    order, runner = Order(), HashRunner(num_slots=3)
    runner.hold_at = 0
    scheduler = Scheduler(SchedulerLimits(3, 512, 64, 128, 4), AdmissionRule(ADMIT_BYTES, lambda _: 0))
    account = MemoryAccount(0, 1, PLENTY, own_bytes, {})
    loaded = LoadedRank(runner, lambda: account, lambda: own_bytes)
    loop = EngineLoop(scheduler, Group(other_bytes), lambda: loaded, order, time.monotonic)
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    wait_until(lambda: order.is_serving, "the loop serves")
    for name in NAMES:
        request = Request(name, (1, 2, 3), SamplingParams(3), Limits(4, ignore_eos=True))
        loop.post(Submit(request, time.monotonic()))
        # The first runs, held in its step, before the next arrives.
        wait_until(lambda: len(order.events) > 0, "the first is admitted")
    runner.released.set()
    wait_until(lambda: len(order.events) == 2 * len(NAMES), "all have ended")
    loop.post(Stop())
    thread.join()
    return order.events


ONE_BY_ONE = [(what, name) for name in NAMES for what in ("Admitted", "Finished")]


@pytest.mark.parametrize(("own_bytes", "other_bytes"), [(ADMIT_BYTES, PLENTY), (PLENTY, ADMIT_BYTES)])
def test_where_a_rank_has_too_little_free_requests_run_one_by_one(own_bytes: int, other_bytes: int) -> None:
    assert run_three(own_bytes, other_bytes) == ONE_BY_ONE


def test_with_memory_free_on_every_rank_they_run_together() -> None:
    events = run_three(PLENTY, PLENTY)
    assert [what for what, _ in events] == ["Admitted"] * 3 + ["Finished"] * 3
