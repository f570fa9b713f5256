"""Random arrivals, cancels, yields, group losses, plans made ahead: each accepted request ends once, with its tokens.

After every step the blocks add up, what a plan says gives the ranks the same blocks, and nobody waits too long.
"""

from collections import Counter, deque
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from support.hash_runner import HashRunner
from support.scheduler_driver import run_alone
from twinspark_engine.errors import ContextTooLongError, QueueFullError
from twinspark_engine.kv_cache.block_reservations import BlockReservations
from twinspark_engine.request import Limits, Request, SamplingParams
from twinspark_engine.scheduler.chunks import PASS_LIMIT
from twinspark_engine.scheduler.events import Admitted, Finished, RequestEvent, TokensCommitted
from twinspark_engine.scheduler.limits import SchedulerLimits
from twinspark_engine.scheduler.plan import SlotOutput, StepPlan, StepResult
from twinspark_engine.scheduler.scheduler import Scheduler

NUM_BLOCKS = 7
CONTEXT = 1024


class SchedulerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.accepted: dict[str, Request] = {}
        self.ends: Counter[str] = Counter()
        self.finished: set[str] = set()
        self.events: list[RequestEvent] = []
        self.plans: deque[StepPlan] = deque()
        self.epoch = 0
        self.now = 0.0

    @initialize(
        num_slots=st.sampled_from([1, 2, 3, 5, 16]),
        cells=st.tuples(st.integers(1, 3), st.integers(1, 4)),
        short_prompt_tokens=st.sampled_from([0, 100]),
        share=st.sampled_from([0.0, 0.5, 0.9]),
        times=st.tuples(st.integers(0, 20), st.integers(0, 3000)),
        is_hasty=st.booleans(),
    )
    def start(
        self,
        num_slots: int,
        cells: tuple[int, int],
        short_prompt_tokens: int,
        share: float,
        times: tuple[int, int],
        is_hasty: bool,
    ) -> None:
        """is_hasty: a second plan is made before the first one's result whatever goes on, not only in steady decode."""
        self.is_hasty = is_hasty
        chunks = (64 * cells[0], 64 * cells[1])
        self.limits = SchedulerLimits(num_slots, CONTEXT, *chunks, 6, NUM_BLOCKS, short_prompt_tokens, share)
        self.scheduler = Scheduler(self.limits)
        self.runner = HashRunner(num_slots=num_slots)
        self.runner.prompt_row_us, self.runner.decode_step_us = times
        self.forget_ranks()

    def forget_ranks(self) -> None:
        """What the ranks know: their blocks follow from plans and results alone."""
        self.replay = BlockReservations(NUM_BLOCKS, self.limits.num_slots)
        self.running: dict[int, Request] = {}
        self.computed: dict[int, int] = {}
        self.waits: Counter[int] = Counter()

    @rule(
        num_prompt_tokens=st.integers(1, 900),
        max_tokens=st.integers(0, 12),
        stop=st.booleans(),
        background=st.booleans(),
    )
    def submit(self, num_prompt_tokens: int, max_tokens: int, stop: bool, background: bool) -> None:
        request_id = f"r{len(self.accepted)}"
        prompt = tuple((len(self.accepted) * 131 + i) % 4000 + 1 for i in range(num_prompt_tokens))
        stops = frozenset(range(0, 4093, 5)) if stop else frozenset()
        request = Request(
            request_id, prompt, SamplingParams(seed=1), Limits(max_tokens, stops), is_background=background
        )
        try:
            self.scheduler.submit(request, self.now)
        except QueueFullError:
            assert self.scheduler.num_waiting >= self.limits.queue_limit
            return
        self.accepted[request_id] = request

    @rule(
        num_background=st.integers(1, 3), num_prompt_tokens=st.integers(1, 200), num_steps=st.integers(1, 8),
        waiting=st.integers(0, 1), num_urgent=st.integers(1, 2), urgent_tokens=st.integers(1, 900),
    )  # fmt: skip
    def interrupt(
        self, num_background: int, num_prompt_tokens: int, num_steps: int,
        waiting: int, num_urgent: int, urgent_tokens: int,
    ) -> None:  # fmt: skip
        """Background requests run for a while, then foreground ones come; some plans may be in flight."""
        for _ in range(num_background):
            self.submit(num_prompt_tokens, 30, False, True)
        for _ in range(num_steps):
            self.plan()
            if len(self.plans) > waiting:
                self.execute(0.5)
        for _ in range(num_urgent):
            self.submit(urgent_tokens, 5, False, False)

    @rule(excess=st.integers(1, 2000), of_prompt=st.booleans())
    def submit_the_impossible(self, excess: int, of_prompt: bool) -> None:
        prompt = (1,) * (CONTEXT - 10 + (excess if of_prompt else 0))
        request = Request("impossible", prompt, SamplingParams(seed=1), Limits(10 + (0 if of_prompt else excess)))
        num_waiting = self.scheduler.num_waiting
        try:
            self.scheduler.submit(request, self.now)
            raise AssertionError("it was accepted")
        except ContextTooLongError:
            assert self.scheduler.num_waiting == num_waiting

    @precondition(lambda self: self.accepted)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        request_id = data.draw(st.sampled_from(sorted(self.accepted)))
        cancelled = self.scheduler.cancel(request_id)
        assert cancelled == (self.ends[request_id] == 0)
        self.ends[request_id] += cancelled

    @rule()
    def plan(self) -> None:
        if not self.plans or (len(self.plans) < 2 and (self.is_hasty or self.scheduler.is_steady)):
            plan = self.scheduler.plan(self.now)
            self.events += self.scheduler.take_admitted()
            if not plan.is_empty:
                self.plans.append(plan)

    @precondition(lambda self: self.plans)
    @rule(seconds=st.floats(0, 5))
    def execute(self, seconds: float) -> None:
        self.now += seconds
        plan = self.plans.popleft()
        self.check_rows(plan)
        result = self.runner.execute(plan, lambda outputs: self.hear(outputs, None))
        self.hear(result.outputs, result)

    def check_rows(self, plan: StepPlan) -> None:
        """Books what the ranks learn of a plan before its forwards, and how long prompts waited."""
        for slot in plan.cancelled_slots:
            self.leave(slot)
        for admission in plan.admissions:
            assert admission.slot not in self.running
            self.running[admission.slot] = admission.request
            self.computed[admission.slot] = self.waits[admission.slot] = 0
            self.replay.reserve(admission.slot, admission.request.num_reserved_tokens)
        prefilling = {s for s, r in self.running.items() if self.computed[s] < r.num_prompt_tokens}
        for chunk in plan.chunks:
            self.computed[chunk.slot] += chunk.num_scheduled_tokens
        served = {chunk.slot for chunk in plan.chunks}
        for slot in prefilling:
            self.waits[slot] = 0 if slot in served else self.waits[slot] + bool(served)
            assert self.waits[slot] < PASS_LIMIT + self.limits.num_slots
        self.check_short_prompts(plan)

    def check_short_prompts(self, plan: StepPlan) -> None:
        """A short prompt is computed whole in its admission step, if the forward was not filled before it."""
        left = self.limits.forward_tokens - sum(chunk.num_scheduled_tokens for chunk in plan.chunks)
        for admission in plan.admissions:
            num_tokens = admission.request.num_prompt_tokens
            if num_tokens <= self.limits.short_prompt_tokens:
                assert self.computed[admission.slot] == num_tokens or left < num_tokens - self.computed[admission.slot]

    def hear(self, outputs: tuple[SlotOutput, ...], result: StepResult | None) -> None:
        for output in outputs:
            if output.finish_reason is not None:
                self.leave(output.slot)
        if result is None:
            new = self.scheduler.apply_first(outputs, self.now)
        else:
            new = self.scheduler.apply(replace(result, num_free_blocks=self.replay.num_free_blocks), self.now)
        for e in new:
            assert self.ends[e.request_id] == 0, "nothing follows a request's end"
            if isinstance(e.event, Finished):
                self.ends[e.request_id] += 1
                self.finished.add(e.request_id)
        self.events += new

    def leave(self, slot: int) -> None:
        if self.running.pop(slot, None) is not None:
            self.replay.release(slot)

    @rule()
    def run_some(self) -> None:
        for _ in range(6):
            self.plan()
            if self.plans:
                self.execute(0.5)

    @rule()
    def lose_the_group(self) -> None:
        for request_id in self.scheduler.drop_all():
            self.ends[request_id] += 1
        self.epoch += 1
        self.scheduler.start_epoch(self.epoch)
        self.runner.reset()
        self.plans.clear()
        self.forget_ranks()

    @invariant()
    def blocks_add_up(self) -> None:
        tables = [self.scheduler.find_blocks(slot) for slot in range(self.limits.num_slots)]
        held = [block for table in tables for block in table]
        assert len(held) == len(set(held)) == self.scheduler.num_used_blocks <= NUM_BLOCKS
        assert sum(map(bool, tables)) == self.scheduler.num_running
        if not (self.plans or self.is_hasty):
            for slot in self.running:
                assert self.replay.table(slot) == tables[slot]

    @invariant()
    def books_agree(self) -> None:
        assert max(self.ends.values(), default=0) <= 1
        assert self.runner.largest_forward <= self.limits.forward_tokens

    def teardown(self) -> None:
        if not hasattr(self, "limits"):
            return
        for _ in range(20_000):
            self.plan()
            if not self.plans:
                break
            self.execute(0.5)
        assert not self.scheduler.has_work
        assert self.scheduler.num_running == self.scheduler.num_in_flight == 0
        assert self.scheduler.num_used_blocks == 0
        assert all(self.ends[request_id] == 1 for request_id in self.accepted)
        admitted = Counter(e.request_id for e in self.events if isinstance(e.event, Admitted))
        assert max(admitted.values(), default=0) <= 1
        for request_id in self.finished:
            request = self.accepted[request_id]
            assert tokens_of(self.events, request_id) == run_alone(request, self.limits).tokens(request_id)


def tokens_of(events: list[RequestEvent], request_id: str) -> list[int]:
    own = (e.event for e in events if e.request_id == request_id)
    return [token for event in own if isinstance(event, TokensCommitted) for token in event.token_ids]


SchedulerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestSchedulerKeepsItsBooks = SchedulerMachine.TestCase
