"""The scheduler: takes requests in, makes one StepPlan a step, books what the step's result says.

Called by the engine's loop only, from its one thread. Every method takes the time it needs as an argument, so that a
decision depends on nothing but its inputs; and times only ever move the step in which rows are computed. Each accepted
request leaves exactly once: by a Finished event, by take_failed, by cancel, or by drop_all.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from twinspark_engine.errors import ContextTooLongError, QueueFullError
from twinspark_engine.kv_cache.block_reservations import BLOCK_TOKENS, BlockCountError, BlockReservations
from twinspark_engine.kv_cache.memory_rule import AdmissionRule
from twinspark_engine.request import ConstraintFailure, Request
from twinspark_engine.scheduler.admission import Claim, Holding, Room, decide_admissions
from twinspark_engine.scheduler.chunks import ChunkBudget, book_chunks, choose_chunks
from twinspark_engine.scheduler.decode_share import DecodeShare
from twinspark_engine.scheduler.events import RequestEvent
from twinspark_engine.scheduler.limits import SchedulerLimits
from twinspark_engine.scheduler.outcome import events_of_admission, events_of_output
from twinspark_engine.scheduler.placement import FindPrefix, SlotCandidate, choose_slot, find_no_prefix
from twinspark_engine.scheduler.plan import Admission, DecodeWindow, PrefillChunk, SlotOutput, StepPlan, StepResult
from twinspark_engine.scheduler.running import Delivery, RunningRequest
from twinspark_engine.scheduler.waiting import WaitingLine, WaitingRequest


@dataclass(frozen=True, slots=True)
class _InFlight:
    """A plan whose result is not known."""

    owners: dict[int, RunningRequest]
    is_beside_decoders: bool
    long_part: float
    """Part of the prompt rows that belong to long prompts, 0 to 1."""


class Scheduler:
    """First come, first admitted; decoders run in every step; prompts share what one forward can hold."""

    def __init__(
        self,
        limits: SchedulerLimits,
        memory: AdmissionRule | None = None,
        find_prefix: FindPrefix = find_no_prefix,
    ) -> None:
        """memory: what a request must leave free beside others; None: nothing."""
        self._limits = limits
        self._memory = memory
        num_blocks = limits.num_blocks or limits.num_slots * BlockReservations.blocks_for(limits.context_tokens)
        self._reservations = BlockReservations(num_blocks, limits.num_slots)
        self._find_prefix = find_prefix
        self._share = DecodeShare(limits.decode_share)
        self._waiting = WaitingLine()
        self._slots: dict[int, RunningRequest] = {}
        self._last_turns = [-1] * limits.num_slots
        self._next_turn = 0
        self._cancelled_slots: list[int] = []
        self._in_flight: deque[_InFlight] = deque()
        self._admitted: list[RequestEvent] = []
        self._failed: list[tuple[str, ConstraintFailure]] = []
        self._epoch = 0
        self._step = 0
        self.num_admissions = [0] * limits.num_slots
        """Requests that were given each slot, by slot."""
        self.num_yields = 0
        """Times that a request gave up its slot."""

    def start_epoch(self, epoch: int) -> None:
        """Begin a group's life with empty slots; drop_all went before."""
        self._epoch, self._step = epoch, 0

    def check(self, request: Request) -> None:
        """Raise ContextTooLongError for a request that no empty engine could hold."""
        most = min(self._limits.context_tokens, self._reservations.num_blocks * BLOCK_TOKENS)
        if request.num_reserved_tokens > most:
            raise ContextTooLongError(request.num_prompt_tokens, request.limits.max_tokens, most)

    def submit(self, request: Request, now: float) -> None:
        """Queue a request. Raises ContextTooLongError, or QueueFullError; the request is then not accepted."""
        self.check(request)
        num_slots = self._limits.num_slots - len(self._slots)
        if not request.is_background:
            num_slots += sum(running.request.is_background for running in self._slots.values())
        if len(self._waiting) >= self._limits.queue_limit + num_slots:
            raise QueueFullError(self._limits.queue_limit)
        self._waiting.append(WaitingRequest(request, Delivery(now)))

    def cancel(self, request_id: str) -> bool:
        """End a request wherever it is; no event follows. False if it is not here (it has ended)."""
        if (waiting := self._waiting.find(request_id)) is not None:
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
        for slot in list(self._slots):
            self._free(slot)
        self._waiting.clear()
        self._cancelled_slots.clear()
        self._in_flight.clear()
        self._admitted.clear()
        self._failed.clear()
        self._share.forgive()
        return ids

    def plan(self, now: float, *, report_memory: bool = False, free_bytes: int | None = None) -> StepPlan:
        """Decide the next step and book it as in flight; an empty plan takes no step number and is not executed.

        free_bytes: the least that any rank has free, needed while a request waits beside running ones.
        """
        left = self._free_cancelled()
        yielded, admissions = self._admit(now, free_bytes)
        windows = self._choose_windows()
        if not windows:
            self._share.forgive()
        chunks = self._choose_chunks(beside_decoders=bool(windows))
        plan = StepPlan(
            self._epoch, self._step, left + yielded, admissions, chunks, windows, report_memory=report_memory
        )
        if not plan.is_empty:
            self._step += 1
            self._in_flight.append(_InFlight(dict(self._slots), bool(windows), self._long_part(chunks)))
        return plan

    def take_admitted(self) -> list[RequestEvent]:
        """Admitted events of the plans made since the last call."""
        admitted, self._admitted = self._admitted, []
        return admitted

    def take_failed(self) -> list[tuple[str, ConstraintFailure]]:
        """The ids of requests that ended because of their grammar since the last call, and why; no event follows."""
        failed, self._failed = self._failed, []
        return failed

    def apply_first(self, outputs: tuple[SlotOutput, ...], now: float) -> list[RequestEvent]:
        """Book what the prompt forward of the oldest plan in flight gave, before the rest of its result is known."""
        return self._book(self._in_flight[0].owners, outputs, now)

    def apply(self, result: StepResult, now: float) -> list[RequestEvent]:
        """Book the result of the oldest plan in flight, without what apply_first booked; free the slots that ended."""
        done = self._in_flight.popleft()
        if done.is_beside_decoders:
            self._share.book(result.prefill_us * done.long_part, result.decode_us)
        events = self._book(done.owners, result.outputs, now)
        self._compare_blocks(result.num_free_blocks)
        return events

    def find_wait(self, now: float) -> float:
        """Seconds for which the next plan had better wait, so that arrivals of an idle time share its forward."""
        limits = self._limits
        if self._slots or not 0 < len(self._waiting) < limits.num_slots:
            return 0.0
        first = min(waiting.delivery.arrived_at for waiting in self._waiting)
        return max(0.0, first + limits.arrival_wait_seconds - now)

    @property
    def has_work(self) -> bool:
        """Whether plan would not be empty."""
        return bool(self._slots or self._waiting or self._cancelled_slots)

    @property
    def is_steady(self) -> bool:
        """Whether every slot in use decodes and nothing waits, so that the next plan can be made ahead of results."""
        return bool(self._slots) and not self._waiting and not any(r.is_prefilling for r in self._slots.values())

    @property
    def num_blocks(self) -> int:
        """KV blocks that requests share."""
        return self._reservations.num_blocks

    @property
    def num_used_blocks(self) -> int:
        """KV blocks that requests hold."""
        return self._reservations.num_blocks - self._reservations.num_free_blocks

    def find_blocks(self, slot: int) -> tuple[int, ...]:
        """KV blocks that the request in a slot holds, in order of position; none where the slot is free."""
        return self._reservations.table(slot) if slot in self._slots else ()

    @property
    def num_in_flight(self) -> int:
        """Plans made whose result was not applied."""
        return len(self._in_flight)

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

    def _admit(self, now: float, free_bytes: int | None) -> tuple[tuple[int, ...], tuple[Admission, ...]]:
        """The slots that are yielded, and the admissions."""

        def take_memory(waiting: WaitingRequest, num_beside: int) -> bool:
            """A request alone needs no memory left: waiting frees none."""
            num_tokens, rule = waiting.request.num_reserved_tokens, self._memory
            if rule is None:
                return True
            if num_beside and free_bytes is not None and not rule.can_admit(num_tokens, free_bytes):
                return False
            rule.book(num_tokens)
            return True

        room = Room(self._limits.num_slots - len(self._slots), self._reservations.num_free_blocks)
        decision = decide_admissions(self._claims(), room, list(self._holdings()), len(self._slots), take_memory)
        for running in decision.yields:
            self._yield(running)
        admissions = tuple(self._admit_one(waiting, now) for waiting in decision.admitted)
        return tuple(running.slot for running in decision.yields), admissions

    def _claims(self) -> Iterator[Claim]:
        for waiting in self._waiting:
            yield Claim(waiting, self._reservations.blocks_for(waiting.request.num_reserved_tokens))

    def _holdings(self) -> Iterator[Holding]:
        for slot, running in self._slots.items():
            if running.request.is_background:
                yield Holding(running, len(self._reservations.table(slot)))

    def _yield(self, running: RunningRequest) -> None:
        running.ended = True
        self._free(running.slot)
        self._waiting.put_back(WaitingRequest(running.request, running.delivery))
        self.num_yields += 1

    def _admit_one(self, waiting: WaitingRequest, now: float) -> Admission:
        request = waiting.request
        self._waiting.remove(waiting)
        slot = self._choose_slot(request)
        self._reservations.reserve(slot, request.num_reserved_tokens)
        is_short = request.num_prompt_tokens <= self._limits.short_prompt_tokens
        running = RunningRequest(request, slot, waiting.delivery, self._next_turn, is_short)
        self._slots[slot] = running
        self._last_turns[slot] = self._next_turn
        self.num_admissions[slot] += 1
        self._next_turn += 1
        self._admitted += events_of_admission(running, now)
        return Admission(slot, request)

    def _choose_slot(self, request: Request) -> int:
        return choose_slot(
            SlotCandidate(slot, self._find_prefix(request, slot), self._last_turns[slot])
            for slot in range(self._limits.num_slots)
            if slot not in self._slots
        )

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
        prefilling = [r for r in self._slots.values() if r.is_prefilling]
        # A short prompt waits for the end of the forward with its first token, as decoders do with their next.
        is_alone = not (beside_decoders or any(r.is_short for r in prefilling))
        long_tokens = limits.chunk_tokens_alone if is_alone else limits.chunk_tokens_beside_decoders
        chunks = choose_chunks(prefilling, ChunkBudget(long_tokens, limits.forward_tokens, self._share.is_owed))
        book_chunks(prefilling, chunks)
        return chunks

    def _long_part(self, chunks: tuple[PrefillChunk, ...]) -> float:
        num_long = sum(c.num_scheduled_tokens for c in chunks if not self._slots[c.slot].is_short)
        return num_long / max(1, sum(c.num_scheduled_tokens for c in chunks))

    def _book(
        self, owners: dict[int, RunningRequest], outputs: tuple[SlotOutput, ...], now: float
    ) -> list[RequestEvent]:
        events: list[RequestEvent] = []
        for output in outputs:
            running = owners[output.slot]
            if running.ended:
                continue
            events += events_of_output(running, output, now)
            if output.failure is not None:
                self._failed.append((running.request.request_id, output.failure))
            if output.has_ended:
                running.ended = True
                self._free(running.slot)
        return events
