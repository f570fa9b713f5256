"""An engine loop in its thread, with a hash runner and a group that breaks on command."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from support.hash_runner import HashRunner
from support.waiting import PATIENCE_SECONDS, wait_until
from twinspark_engine.loop import EngineLoop, Outcome, Stop, Submit
from twinspark_engine.memory import MemoryAccount
from twinspark_engine.ranks.group import LoadedRank, SoloGroup
from twinspark_engine.ranks.transport import TransportError
from twinspark_engine.request import Limits, Request, SamplingParams
from twinspark_engine.scheduler.events import Finished, RequestEvent, TokensCommitted
from twinspark_engine.scheduler.limits import SchedulerLimits
from twinspark_engine.scheduler.plan import StepPlan
from twinspark_engine.scheduler.scheduler import Scheduler
from twinspark_engine.stats import EngineState

LIMITS = SchedulerLimits(3, 512, 64, 128, 4)
ACCOUNT = MemoryAccount(0, 1, 3, 2, {"weights": 1})


def build_request(request_id: str, num_prompt_tokens: int = 5, max_tokens: int = 6, **fields: Any) -> Request:
    prompt = tuple(range(1, num_prompt_tokens + 1))
    return Request(request_id, prompt, SamplingParams(seed=3), Limits(max_tokens, ignore_eos=True), **fields)


class BreakableGroup(SoloGroup):
    """A group whose ranks are lost on command."""

    def __init__(self) -> None:
        self.num_formed = 0
        self.plans: list[StepPlan] = []
        self.lost_at_publish: int | None = None
        self.is_lost = False
        self.form_errors: list[Exception] = []

    def form(self, load: Callable[[], None]) -> int:
        if self.form_errors:
            raise self.form_errors.pop(0)
        load()
        self.is_lost = False
        self.num_formed += 1
        return 100 + self.num_formed

    def publish(self, plan: StepPlan) -> None:
        self.plans.append(plan)
        if self.lost_at_publish is not None and len(self.plans) >= self.lost_at_publish:
            self.is_lost, self.lost_at_publish = True, None

    def check(self) -> None:
        if self.is_lost:
            raise TransportError("a rank is lost")


@dataclass
class Heard:
    """What the loop reported."""

    batches: "queue.SimpleQueue[Sequence[Outcome]]" = field(default_factory=queue.SimpleQueue)
    outcomes: list[Outcome] = field(default_factory=list)
    states: list[EngineState] = field(default_factory=list)

    def on_outcomes(self, outcomes: Sequence[Outcome]) -> None:
        self.batches.put(outcomes)

    def on_state(self, state: EngineState) -> None:
        self.states.append(state)

    def wait_end(self, request_id: str, timeout: float = PATIENCE_SECONDS) -> Outcome:
        deadline = time.monotonic() + timeout
        while not (ends := [o for o in self.outcomes if o.request_id == request_id and is_end(o)]):
            self.outcomes += self.batches.get(timeout=max(0.01, deadline - time.monotonic()))
        return ends[0]

    def tokens(self, request_id: str) -> list[int]:
        events = [o.event for o in self.outcomes if isinstance(o, RequestEvent) and o.request_id == request_id]
        return [token for event in events if isinstance(event, TokensCommitted) for token in event.token_ids]


def is_end(outcome: Outcome) -> bool:
    if isinstance(outcome, RequestEvent):
        return isinstance(outcome.event, Finished)
    return True


class Harness:
    """A loop in its thread."""

    def __init__(self, step_seconds: float = 0.0, limits: SchedulerLimits = LIMITS) -> None:
        self.group = BreakableGroup()
        self.heard = Heard()
        self.runner = HashRunner(num_slots=LIMITS.num_slots, step_seconds=step_seconds)
        self.num_loads = 0
        self.loop = EngineLoop(Scheduler(limits), self.group, self._load, self.heard, time.monotonic)
        self.thread = threading.Thread(target=self.loop.run, daemon=True)

    def _load(self) -> LoadedRank:
        self.num_loads += 1
        return LoadedRank(self.runner, lambda: ACCOUNT)

    def start(self) -> None:
        self.thread.start()
        self.wait(lambda: self.heard.states[-1:] == [EngineState.SERVING], "the loop serves")

    def wait(self, is_true: Callable[[], bool], what: str) -> None:
        wait_until(is_true, what)

    def submit(self, request: Request) -> None:
        self.loop.post(Submit(request, time.monotonic()))

    def stop(self) -> None:
        self.loop.post(Stop())
        self.thread.join(PATIENCE_SECONDS)
        assert not self.thread.is_alive()
        while not self.heard.batches.empty():
            self.heard.outcomes += self.heard.batches.get()
