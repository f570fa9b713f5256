"""EngineLoop: rank 0's step thread, the only caller of scheduler and runner.

It forms the group, then turns commands into steps and steps into events. A lost rank ends every request and begins a
new group; weights stay loaded.
"""

import queue
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from twinspark_engine.errors import RankLostError, constraint_error
from twinspark_engine.memory import MemoryAccount
from twinspark_engine.ranks.group import Group, LoadedRank
from twinspark_engine.ranks.transport import TransportError
from twinspark_engine.request import Request
from twinspark_engine.scheduler.events import RequestEvent, TokensCommitted
from twinspark_engine.scheduler.plan import SlotOutput, StepPlan
from twinspark_engine.scheduler.scheduler import Scheduler
from twinspark_engine.stats import EngineState, Stats
from twinspark_rpc import ServiceError

log = structlog.get_logger()

RETRY_SECONDS = 0.2
"""Pause between two attempts to form the group."""


@dataclass(frozen=True, slots=True)
class Submit:
    """Accept or refuse a request; refusal is a RequestFailed."""

    request: Request
    arrived_at: float


@dataclass(frozen=True, slots=True)
class Cancel:
    """End a request whose caller has left."""

    request_id: str


@dataclass(frozen=True, slots=True)
class MeasureMemory:
    """Call back with every rank's account, or with None if the group is lost."""

    answer: Callable[[list[MemoryAccount] | None], None]


@dataclass(frozen=True, slots=True)
class Wake:
    """Look at the group again: a rank may be lost."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End the thread; the caller has seen to it that no request runs."""


Command = Submit | Cancel | MeasureMemory | Wake | Stop


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """The request ends with a status."""

    request_id: str
    error: ServiceError


@dataclass(frozen=True, slots=True)
class RequestCancelled:
    """A Cancel found its request; nothing more follows."""

    request_id: str


Outcome = RequestEvent | RequestFailed | RequestCancelled


class Listener(Protocol):
    """Hears of what the loop does, from the loop's thread. MUST not block or raise."""

    def on_outcomes(self, outcomes: Sequence[Outcome]) -> None:
        """What one step, or one command, means for requests."""
        ...

    def on_state(self, state: EngineState) -> None:
        """The engine's state changed."""
        ...


class EngineLoop:
    """`post` from any thread; `run` is the thread."""

    def __init__(
        self,
        scheduler: Scheduler,
        group: Group,
        load: Callable[[], LoadedRank],
        listener: Listener,
        clock: Callable[[], float],
    ) -> None:
        self.stats = Stats(num_blocks=scheduler.num_blocks, slot_admissions_total=tuple(scheduler.num_admissions))
        self._scheduler = scheduler
        self._group = group
        self._load = load
        self._listener = listener
        self._clock = clock
        self._inbox: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._loaded: LoadedRank | None = None
        self._plans: deque[StepPlan] = deque()
        self._measurements: list[MeasureMemory] = []
        self._follower_free_bytes: int | None = None
        self._is_serving = False
        self._is_stopping = False
        self._last_failure = ""

    def post(self, command: Command) -> None:
        """Have a command run before the next step."""
        self._inbox.put(command)

    def run(self) -> None:
        """Form, serve, and form again until Stop. Raises RanksDifferError, and what loading raises."""
        self._listener.on_state(EngineState.LOADING)
        while not self._is_stopping:
            try:
                self._form()
                self._serve()
            except TransportError as error:
                self._lose(str(error))
        self._group.finish()

    def _form(self) -> None:
        epoch = self._group.form(self._ensure_loaded)
        self._get_loaded().runner.reset()
        self._scheduler.start_epoch(epoch)
        self.stats.epochs_total += 1
        self._last_failure = ""
        log.info("group_formed", epoch=epoch)
        self._is_serving = True
        self._listener.on_state(EngineState.SERVING)

    def _serve(self) -> None:
        while True:
            self._take_commands()
            if self._is_stopping:
                return
            self._group.check()
            self._make_plans()
            if self._plans:
                self._execute(self._plans.popleft())

    def _take_commands(self) -> None:
        """Run what is in the inbox; wait if there is nothing else to do, or for arrivals that share a forward."""
        wait_seconds = 0.0 if self._plans or self._scheduler.has_work or self._measurements else None
        while True:
            try:
                command = self._inbox.get(timeout=wait_seconds)
            except queue.Empty:
                return
            self._run(command)
            wait_seconds = 0.0 if self._is_stopping else self._scheduler.find_wait(self._clock())

    def _run(self, command: Command) -> None:
        match command:
            case Submit():
                self._submit(command)
            case Cancel():
                if self._scheduler.cancel(command.request_id):
                    self.stats.requests_cancelled_total += 1
                    self._gauge()
                    self._listener.on_outcomes([RequestCancelled(command.request_id)])
            case MeasureMemory():
                if self._is_serving:
                    self._measurements.append(command)
                else:
                    command.answer(None)
            case Stop():
                self._is_stopping = True
            case Wake():
                pass

    def _submit(self, command: Submit) -> None:
        request_id = command.request.request_id
        if not self._is_serving:
            self._listener.on_outcomes([RequestFailed(request_id, RankLostError())])
            return
        try:
            self._scheduler.submit(command.request, command.arrived_at)
        except ServiceError as error:
            self._listener.on_outcomes([RequestFailed(request_id, error)])
            return
        self.stats.requests_total += 1
        self._gauge()

    def _make_plans(self) -> None:
        """Send the next plan, and in steady decode the one after it, so that it is there before it is needed."""
        if not self._plans:
            self._make_plan(report_memory=bool(self._measurements))
        if self._plans and self._scheduler.is_steady and not self._plans[-1].report_memory:
            self._make_plan(report_memory=False)

    def _make_plan(self, *, report_memory: bool) -> None:
        now = self._clock()
        plan = self._scheduler.plan(now, report_memory=report_memory, free_bytes=self._least_free_bytes())
        if plan.admissions and self._get_loaded().free_bytes is not None:
            # The next admission beside others counts with what the other ranks have free after this one.
            plan = replace(plan, report_memory=True)
        self._gauge()
        admitted = self._scheduler.take_admitted()
        if admitted:
            self._listener.on_outcomes(admitted)
        if plan.is_empty:
            return
        self._group.publish(plan)
        self._plans.append(plan)
        if self.stats.last_token_at is None:
            self.stats.last_token_at = now

    def _execute(self, plan: StepPlan) -> None:
        stats = self.stats
        prompt_tokens_total = stats.prompt_tokens_total + sum(chunk.num_scheduled_tokens for chunk in plan.chunks)

        def report_first(outputs: tuple[SlotOutput, ...]) -> None:
            """Send first tokens before the slots decode."""
            self._group.check()
            now = self._clock()
            stats.prompt_tokens_total = prompt_tokens_total
            self._report(self._scheduler.apply_first(outputs, now), now)

        result = self._get_loaded().runner.execute(plan, report_first)
        self._group.check()
        now = self._clock()
        stats.steps_total += 1
        stats.prefill_us_total += result.prefill_us
        stats.decode_us_total += result.decode_us
        stats.mask_wait_us_total += result.mask_wait_us
        stats.masked_rows_total += result.num_masked_rows
        stats.prompt_tokens_total = prompt_tokens_total
        self._report(self._scheduler.apply(result, now), now)
        if plan.report_memory:
            self._answer_memory()

    def _report(self, events: Sequence[RequestEvent], now: float) -> None:
        """Count and send events, in this order: a caller that has heard the end of its request finds it counted."""
        failed = self._scheduler.take_failed()
        self.stats.requests_failed_total += len(failed)
        self._count(events, now)
        outcomes: list[Outcome] = [*events]
        outcomes += [RequestFailed(request_id, constraint_error(failure)) for request_id, failure in failed]
        if outcomes:
            self._listener.on_outcomes(outcomes)

    def _count(self, events: Sequence[RequestEvent], now: float) -> None:
        stats, scheduler = self.stats, self._scheduler
        num_tokens = sum(len(e.event.token_ids) for e in events if isinstance(e.event, TokensCommitted))
        stats.output_tokens_total += num_tokens
        self._gauge()
        if not scheduler.has_work:
            stats.last_token_at = None
        elif num_tokens:
            stats.last_token_at = now

    def _gauge(self) -> None:
        """Show what the scheduler holds now: also between the results of steps, which may take long."""
        stats, scheduler = self.stats, self._scheduler
        stats.num_running, stats.num_waiting = scheduler.num_running, scheduler.num_waiting
        stats.num_prefilling = scheduler.num_prefilling
        stats.num_used_blocks = scheduler.num_used_blocks
        stats.requests_yielded_total = scheduler.num_yields
        stats.slot_admissions_total = tuple(scheduler.num_admissions)

    def _answer_memory(self) -> None:
        others = self._group.collect_memory()
        self._follower_free_bytes = min((account.free_bytes for account in others), default=None)
        accounts = [self._get_loaded().measure_memory(), *others]
        for measurement in self._measurements:
            measurement.answer(accounts)
        self._measurements.clear()

    def _least_free_bytes(self) -> int | None:
        """The least that any rank has free, as last heard of the others; None where admission does not ask."""
        read, num_waiting = self._get_loaded().free_bytes, self._scheduler.num_waiting
        if read is None or not num_waiting or num_waiting + self._scheduler.num_running == 1:
            return None
        own = read()
        return own if self._follower_free_bytes is None else min(own, self._follower_free_bytes)

    def _lose(self, reason: str) -> None:
        """End every request; the group is formed again after a pause."""
        if self._is_serving:
            log.warning("group_lost", reason=reason)
            self._listener.on_state(EngineState.FORMING)
        elif reason != self._last_failure:
            log.info("group_not_formed", reason=reason)
        self._is_serving, self._last_failure = False, reason
        dropped = self._scheduler.drop_all()
        if self._loaded is not None:
            self._loaded.runner.reset()
        self._plans.clear()
        self.stats.requests_failed_total += len(dropped)
        self._count([], self._clock())
        self._listener.on_outcomes([RequestFailed(request_id, RankLostError()) for request_id in dropped])
        for measurement in self._measurements:
            measurement.answer(None)
        self._measurements.clear()
        self._group.leave(reason)
        self._pause()

    def _pause(self) -> None:
        deadline = self._clock() + RETRY_SECONDS
        while not self._is_stopping and (left := deadline - self._clock()) > 0:
            try:
                self._run(self._inbox.get(timeout=left))
            except queue.Empty:
                return

    def _ensure_loaded(self) -> None:
        if self._loaded is None:
            self._loaded = self._load()

    def _get_loaded(self) -> LoadedRank:
        self._ensure_loaded()
        assert self._loaded is not None
        return self._loaded
