"""A scheduler beside a hash runner, stepped by hand."""

from typing import Any

from support.hash_runner import HashRunner
from twinspark_engine.request import Limits, Request, SamplingParams
from twinspark_engine.scheduler.events import RequestEvent, TokensCommitted
from twinspark_engine.scheduler.limits import SchedulerLimits
from twinspark_engine.scheduler.plan import SlotOutput, StepPlan
from twinspark_engine.scheduler.scheduler import Scheduler

LIMITS = SchedulerLimits(
    num_slots=2, context_tokens=1024, chunk_tokens_beside_decoders=128, chunk_tokens_alone=256, queue_limit=3
)


def build_request(request_id: str, num_prompt_tokens: int = 3, max_tokens: int = 4, **fields: Any) -> Request:
    prompt = tuple((len(request_id) * 31 + i * 7) % 4000 + 1 for i in range(num_prompt_tokens))
    return Request(request_id, prompt, SamplingParams(seed=5), Limits(max_tokens, ignore_eos=True), **fields)


class Driver:
    """One second passes a step."""

    def __init__(self, limits: SchedulerLimits = LIMITS, **options: Any) -> None:
        self.scheduler = Scheduler(limits, **options)
        self.runner = HashRunner(num_slots=limits.num_slots)
        self.now = 0.0
        self.events: list[RequestEvent] = []

    def submit(self, request: Request) -> None:
        self.scheduler.submit(request, self.now)

    def step(self) -> StepPlan:
        plan = self.scheduler.plan(self.now)
        self.events += self.scheduler.take_admitted()
        self.now += 1.0
        if not plan.is_empty:
            self.events += self.scheduler.apply(self.runner.execute(plan, self._book_first), self.now)
        return plan

    def run(self) -> None:
        while self.scheduler.has_work:
            self.step()

    def tokens(self, request_id: str) -> list[int]:
        found = [e.event for e in self.events if e.request_id == request_id]
        return [token for event in found if isinstance(event, TokensCommitted) for token in event.token_ids]

    def _book_first(self, outputs: tuple[SlotOutput, ...]) -> None:
        self.events += self.scheduler.apply_first(outputs, self.now)


def run_alone(request: Request, limits: SchedulerLimits = LIMITS) -> Driver:
    """A driver that ran this request and nothing else."""
    driver = Driver(limits)
    driver.submit(request)
    driver.run()
    return driver
