"""Random arrivals, cancels, group losses, plans made ahead: each accepted request ends once, with its tokens."""

from collections import Counter, deque

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from support.hash_runner import HashRunner
from twinspark_engine.errors import ContextTooLongError, QueueFullError
from twinspark_engine.request import Limits, Request, SamplingParams
from twinspark_engine.scheduler.events import Admitted, Finished, RequestEvent, TokensCommitted
from twinspark_engine.scheduler.plan import StepPlan
from twinspark_engine.scheduler.scheduler import Scheduler, SchedulerLimits

LIMITS = SchedulerLimits(
    num_slots=3, context_tokens=512, chunk_tokens_beside_decoders=64, chunk_tokens_alone=192, queue_limit=4
)


def tokens_alone(request: Request) -> list[int]:
    scheduler, runner = Scheduler(LIMITS), HashRunner(num_slots=1)
    scheduler.submit(request, 0.0)
    events: list[RequestEvent] = []
    while scheduler.has_work:
        events += scheduler.apply(runner.execute(scheduler.plan(0.0)), 0.0)
    return committed(events, request.request_id)


def committed(events: list[RequestEvent], request_id: str) -> list[int]:
    return [
        token
        for e in events
        if e.request_id == request_id and isinstance(e.event, TokensCommitted)
        for token in e.event.token_ids
    ]


class SchedulerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.scheduler = Scheduler(LIMITS)
        self.runner = HashRunner(num_slots=LIMITS.num_slots)
        self.plans: deque[StepPlan] = deque()
        self.accepted: dict[str, Request] = {}
        self.ends: Counter[str] = Counter()
        self.finished: set[str] = set()
        self.events: list[RequestEvent] = []
        self.epoch = 0

    @rule(num_prompt_tokens=st.integers(1, 520), max_tokens=st.integers(0, 12), stop=st.booleans())
    def submit(self, num_prompt_tokens: int, max_tokens: int, stop: bool) -> None:
        request_id = f"r{len(self.accepted)}"
        prompt = tuple((len(self.accepted) * 131 + i) % 4000 + 1 for i in range(num_prompt_tokens))
        stops = frozenset(range(0, 4093, 5)) if stop else frozenset()
        request = Request(request_id, prompt, SamplingParams(seed=1), Limits(max_tokens, stops))
        try:
            self.scheduler.submit(request, 0.0)
        except ContextTooLongError:
            assert num_prompt_tokens + max_tokens > LIMITS.context_tokens
            return
        except QueueFullError:
            num_free = LIMITS.num_slots - self.scheduler.num_running
            assert self.scheduler.num_waiting == LIMITS.queue_limit + num_free
            return
        self.accepted[request_id] = request

    @precondition(lambda self: self.accepted)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        request_id = data.draw(st.sampled_from(sorted(self.accepted)))
        cancelled = self.scheduler.cancel(request_id)
        assert cancelled == (self.ends[request_id] == 0)
        self.ends[request_id] += cancelled

    @rule()
    def plan(self) -> None:
        if len(self.plans) < 2:
            plan = self.scheduler.plan(0.0)
            self.events += self.scheduler.take_admitted()
            if not plan.is_empty:
                self.plans.append(plan)

    @precondition(lambda self: self.plans)
    @rule()
    def execute(self) -> None:
        new = self.scheduler.apply(self.runner.execute(self.plans.popleft()), 0.0)
        for e in new:
            assert self.ends[e.request_id] == 0, "nothing follows a request's end"
            if isinstance(e.event, Finished):
                self.ends[e.request_id] += 1
                self.finished.add(e.request_id)
        self.events += new

    @rule()
    def run_some(self) -> None:
        for _ in range(6):
            self.plan()
            if self.plans:
                self.execute()

    @rule()
    def lose_the_group(self) -> None:
        for request_id in self.scheduler.drop_all():
            self.ends[request_id] += 1
        self.epoch += 1
        self.scheduler.start_epoch(self.epoch)
        self.runner.reset()
        self.plans.clear()

    @invariant()
    def books_agree(self) -> None:
        assert self.scheduler.num_running <= LIMITS.num_slots
        assert max(self.ends.values(), default=0) <= 1
        assert self.runner.largest_forward <= LIMITS.chunk_tokens_alone

    def teardown(self) -> None:
        for _ in range(2000):
            self.plan()
            if not self.plans:
                break
            self.execute()
        assert not self.scheduler.has_work
        assert self.scheduler.num_running == self.scheduler.num_in_flight == 0
        assert all(self.ends[request_id] == 1 for request_id in self.accepted)
        admitted = Counter(e.request_id for e in self.events if isinstance(e.event, Admitted))
        assert max(admitted.values(), default=0) <= 1
        for request_id in self.finished:
            assert committed(self.events, request_id) == tokens_alone(self.accepted[request_id])


SchedulerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestSchedulerKeepsItsBooks = SchedulerMachine.TestCase
