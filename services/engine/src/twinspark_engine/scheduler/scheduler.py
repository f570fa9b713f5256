"""The scheduler: takes requests in, makes one StepPlan a step, books what the step's result says.

Called by the engine's loop only, from its one thread. Every method takes the time it needs as an argument, so that a
decision depends on nothing but its inputs. Each accepted request leaves exactly once: by a Finished event, by cancel,
or by drop_all.
"""

from collections import deque
from dataclasses import dataclass

from twinspark_engine.errors import ContextTooLongError, QueueFullError
from twinspark_engine.kv_cache.block_reservations import BlockCountError, BlockReservations
from twinspark_engine.kv_cache.memory_rule import AdmissionRule
from twinspark_engine.request import Request
from twinspark_engine.scheduler.chunks import choose_chunks
from twinspark_engine.scheduler.events import RequestEvent
from twinspark_engine.scheduler.outcome import admitted_event, events_of_output
from twinspark_engine.scheduler.plan import Admission, DecodeWindow, PrefillChunk, StepPlan, StepResult
from twinspark_engine.scheduler.running import RunningRequest


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """Sizes that the scheduler keeps to."""

    num_slots: int
    context_tokens: int
    """Prompt and output tokens of a request at most."""
    chunk_tokens_beside_decoders: int
    """Prompt rows of a forward while a slot decodes."""
    chunk_tokens_alone: int
    """Prompt rows of a forward while none does."""
    queue_limit: int
    """Requests that wait at most, besides those that will take a free slot in the next step."""
    num_blocks: int = 0
    """KV blocks that requests share, a context's at least; 0: a whole context for every slot."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    request: Request
    arrived_at: float


class Scheduler:
    """First come, first admitted; decoders run in every step; prompts share what one forward can hold."""

    def __init__(self, limits: SchedulerLimits, memory: AdmissionRule | None = None) -> None:
        """memory: what a request must leave free beside others; None: nothing."""
        self._limits = limits
        self._memory = memory
        num_blocks = limits.num_blocks or limits.num_slots * BlockReservations.blocks_for(limits.context_tokens)
        self._reservations = BlockReservations(num_blocks, limits.num_slots)
        self._waiting: deque[_Waiting] = deque()
        self._slots: dict[int, RunningRequest] = {}
        self._cancelled_slots: list[int] = []
        self._in_flight: deque[dict[int, RunningRequest]] = deque()
        self._admitted: list[RequestEvent] = []
        self._epoch = 0
        self._step = 0

    def start_epoch(self, epoch: int) -> None:
        """Begin a group's life with empty slots; drop_all went before."""
        self._epoch, self._step = epoch, 0

    def check(self, request: Request) -> None:
        """Raise ContextTooLongError for a request that no empty engine could hold."""
        num_tokens = request.num_reserved_tokens
        if num_tokens > self._limits.context_tokens or not self._reservations.can_ever_reserve(num_tokens):
            raise ContextTooLongError(request.num_prompt_tokens, request.limits.max_tokens, self._limits.context_tokens)

    def submit(self, request: Request, now: float) -> None:
        """Queue a request. Raises ContextTooLongError, or QueueFullError; the request is then not accepted."""
        self.check(request)
        if len(self._waiting) >= self._limits.queue_limit + len(self._reservations.free_slots):
            raise QueueFullError(self._limits.queue_limit)
        self._waiting.append(_Waiting(request, now))

    def cancel(self, request_id: str) -> bool:
        """End a request wherever it is; no event follows. False if it is not here (it has ended)."""
        for waiting in self._waiting:
            if waiting.request.request_id == request_id:
                self._waiting.remove(waiting)
                return True
        for running in self._slots.values():
            if running.request.request_id == request_id and not running.ended:
                running.ended = True
                self._cancelled_slots.append(running.slot)
                return True
        return False

    def drop_all(self) -> list[str]:
        """Forget every request and every plan in flight (the ranks' state is lost); returns their ids."""
        ids = [r.request.request_id for r in self._slots.values() if not r.ended]
        ids += [w.request.request_id for w in self._waiting]
        for slot in self._slots:
            self._reservations.release(slot)
        self._slots.clear()
        self._waiting.clear()
        self._cancelled_slots.clear()
        self._in_flight.clear()
        self._admitted.clear()
        return ids

    def plan(self, now: float, *, report_memory: bool = False, free_bytes: int | None = None) -> StepPlan:
        """Decide the next step and book it as in flight; an empty plan takes no step number and is not executed.

        free_bytes: the least that any rank has free, needed while a request waits beside running ones.
        """
        cancelled = self._free_cancelled()
        admissions = self._admit(now, free_bytes)
        windows = self._choose_windows()
        chunks = self._choose_chunks(beside_decoders=bool(windows))
        plan = StepPlan(self._epoch, self._step, cancelled, admissions, chunks, windows, report_memory=report_memory)
        if not plan.is_empty:
            self._step += 1
            self._in_flight.append(dict(self._slots))
        return plan

    def take_admitted(self) -> list[RequestEvent]:
        """Admitted events of the plans made since the last call."""
        admitted, self._admitted = self._admitted, []
        return admitted

    def apply(self, result: StepResult, now: float) -> list[RequestEvent]:
        """Book the result of the oldest plan in flight and free the slots that ended."""
        owners = self._in_flight.popleft()
        events: list[RequestEvent] = []
        for output in result.outputs:
            running = owners[output.slot]
            if running.ended:
                continue
            events += events_of_output(running, output, now)
            if output.finish_reason is not None:
                running.ended = True
                self._free(running.slot)
        self._compare_blocks(result.num_free_blocks)
        return events

    @property
    def has_work(self) -> bool:
        """Whether plan would not be empty."""
        return bool(self._slots or self._waiting or self._cancelled_slots)

    @property
    def is_steady(self) -> bool:
        """Whether every slot in use decodes and nothing waits, so that the next plan can be made ahead of results."""
        return bool(self._slots) and not self._waiting and not any(r.is_prefilling for r in self._slots.values())

    @property
    def num_in_flight(self) -> int:
        """Plans made whose result was not applied."""
        return len(self._in_flight)

    @property
    def num_blocks(self) -> int:
        """KV blocks that requests share."""
        return self._reservations.num_blocks

    @property
    def num_used_blocks(self) -> int:
        """KV blocks that requests hold."""
        return self._reservations.num_blocks - self._reservations.num_free_blocks

    @property
    def num_waiting(self) -> int:
        """Requests waiting for admission."""
        return len(self._waiting)

    @property
    def num_running(self) -> int:
        """Requests in a slot."""
        return len(self._slots)

    @property
    def num_prefilling(self) -> int:
        """Requests in a slot whose prompt is being computed."""
        return sum(r.is_prefilling for r in self._slots.values())

    def _free(self, slot: int) -> None:
        del self._slots[slot]
        self._reservations.release(slot)

    def _free_cancelled(self) -> tuple[int, ...]:
        cancelled = tuple(self._cancelled_slots)
        self._cancelled_slots.clear()
        for slot in cancelled:
            self._free(slot)
        return cancelled

    def _admit(self, now: float, free_bytes: int | None) -> tuple[Admission, ...]:
        admissions = []
        while self._waiting and self._can_admit(self._waiting[0].request.num_reserved_tokens, free_bytes):
            waiting = self._waiting.popleft()
            num_tokens = waiting.request.num_reserved_tokens
            slot = self._reservations.free_slots[0]
            self._reservations.reserve(slot, num_tokens)
            if self._memory is not None:
                self._memory.book(num_tokens)
            running = RunningRequest(waiting.request, slot, waiting.arrived_at, now)
            self._slots[slot] = running
            self._admitted.append(admitted_event(running))
            admissions.append(Admission(slot, waiting.request))
        return tuple(admissions)

    def _can_admit(self, num_tokens: int, free_bytes: int | None) -> bool:
        """Whether there are a slot, blocks and memory. A request alone needs no memory left: waiting frees none."""
        if not self._reservations.free_slots or not self._reservations.can_reserve(num_tokens):
            return False
        if self._memory is None or free_bytes is None or not self._slots:
            return True
        return self._memory.can_admit(num_tokens, free_bytes)

    def _compare_blocks(self, num_free_blocks: int | None) -> None:
        """Raise BlockCountError where the runner, whose books are checked, has other blocks free than these."""
        is_same_moment = not self._in_flight and not self._cancelled_slots
        if num_free_blocks is not None and is_same_moment and num_free_blocks != self._reservations.num_free_blocks:
            raise BlockCountError(
                f"the scheduler counts {self._reservations.num_free_blocks} free blocks, the runner {num_free_blocks}"
            )

    def _choose_windows(self) -> tuple[DecodeWindow, ...]:
        windows = []
        for slot in sorted(self._slots):
            running = self._slots[slot]
            if running.may_decode:
                running.num_rounds += 1
                windows.append(DecodeWindow(slot))
        return tuple(windows)

    def _choose_chunks(self, *, beside_decoders: bool) -> tuple[PrefillChunk, ...]:
        limits = self._limits
        budget = limits.chunk_tokens_beside_decoders if beside_decoders else limits.chunk_tokens_alone
        prefilling = [r for r in self._slots.values() if r.is_prefilling]
        chunks = choose_chunks(prefilling, budget)
        for running in prefilling:
            running.times_passed_over += 1
        for chunk in chunks:
            running = self._slots[chunk.slot]
            running.num_computed_tokens += chunk.num_scheduled_tokens
            running.times_passed_over = 0
        return chunks
