"""A runner without a model: every token is a hash of all tokens before it, of the seed and of what ranks exchanged.

Any slip of state, slot, position or rank shows as another token. It keeps to Runner's contract and checks that plans
do.
"""

import hashlib
import threading
import time
from dataclasses import dataclass, field

import torch

from twinspark_engine.ranks.group import OnFirst
from twinspark_engine.ranks.transport import LocalTransport, Transport
from twinspark_engine.request import ConstraintFailure, FinishReason, Request
from twinspark_engine.scheduler.plan import (
    CELL_TOKENS,
    Admission,
    PrefillChunk,
    SlotOutput,
    StepPlan,
    StepResult,
    TokenLogprobs,
)

VOCABULARY_SIZE = 4093
EOS_TOKEN_ID = 0


@dataclass
class HashSlot:
    """One slot's request and history."""

    request: Request
    history: list[int] = field(default_factory=list)
    num_output_tokens: int = 0


class HashRunner:
    """execute and reset as the real one; `step_seconds` makes a forward last.

    A request in `failures` ends with that when it would draw. From step `hold_at` on it waits until `released` is set,
    so that a test can look while requests run. The times that it reports are `prompt_row_us` for each prompt row and
    `decode_step_us` for each decode forward.
    """

    def __init__(self, transport: Transport | None = None, num_slots: int = 4, step_seconds: float = 0.0) -> None:
        self.transport = transport or LocalTransport()
        self.num_slots = num_slots
        self.step_seconds = step_seconds
        self.slots: dict[int, HashSlot] = {}
        self.next_step = 0
        self.num_steps = 0
        self.largest_forward = 0
        self.hold_at: int | None = None
        self.released = threading.Event()
        self.failures: dict[str, ConstraintFailure] = {}
        self.prompt_row_us = 0
        self.decode_step_us = 0

    def reset(self) -> None:
        self.slots.clear()
        self.next_step = 0

    def execute(self, plan: StepPlan, on_first: OnFirst | None = None) -> StepResult:
        assert plan.step == self.next_step, "steps come in order, without gaps"
        assert not plan.is_empty
        if self.hold_at is not None and plan.step >= self.hold_at:
            self.released.wait()
        self.next_step += 1
        self.num_steps += 1
        for slot in plan.cancelled_slots:
            self.slots.pop(slot, None)
        for admission in plan.admissions:
            self._admit(admission)
        windows = [w.slot for w in plan.windows if w.slot in self.slots]
        assert all(self.slots[slot].num_output_tokens for slot in windows), "a first token is fed back in a later step"
        outputs = self._prefill(plan.chunks) if plan.chunks else []
        if outputs and windows and on_first is not None:
            on_first(tuple(outputs))
            outputs = []
        if windows:
            outputs += [self._output(slot, token) for slot, token in zip(windows, self._draw(windows), strict=True)]
        prefill_us = self.prompt_row_us * sum(chunk.num_scheduled_tokens for chunk in plan.chunks)
        return StepResult(tuple(outputs), prefill_us, self.decode_step_us if windows else 0)

    def _admit(self, admission: Admission) -> None:
        assert admission.slot not in self.slots, "a slot is given out while in use"
        assert 0 <= admission.slot < self.num_slots
        self.slots[admission.slot] = HashSlot(admission.request)

    def _prefill(self, chunks: tuple[PrefillChunk, ...]) -> list[SlotOutput]:
        self.largest_forward = max(self.largest_forward, sum(c.num_scheduled_tokens for c in chunks))
        outputs, ended = [], []
        for chunk in chunks:
            held = self.slots[chunk.slot]
            prompt = held.request.prompt_token_ids
            end = chunk.start + chunk.num_scheduled_tokens
            assert chunk.start == len(held.history) and chunk.start % CELL_TOKENS == 0
            assert end == len(prompt) or end % CELL_TOKENS == 0
            held.history += prompt[chunk.start : end]
            if end == len(prompt):
                ended.append(chunk.slot)
        drawn = dict(zip(ended, self._draw(ended), strict=True))
        for chunk in chunks:
            outputs.append(self._prompt_output(chunk, drawn.get(chunk.slot)))
        return [output for output in outputs if output is not None]

    def _prompt_output(self, chunk: PrefillChunk, token: int | None) -> SlotOutput | None:
        request = self.slots[chunk.slot].request
        known: tuple[TokenLogprobs, ...] = ()
        if request.num_prompt_top_logprobs is not None:
            end = min(chunk.start + chunk.num_scheduled_tokens + 1, request.num_prompt_tokens)
            ids = request.prompt_token_ids[chunk.start + 1 : end]
            known = tuple(TokenLogprobs(-float(token_id)) for token_id in ids)
        if token is None:
            return SlotOutput(chunk.slot, (), (), known, chunk.start + 1) if known else None
        output = self._output(chunk.slot, token)
        return SlotOutput(
            chunk.slot, output.token_ids, output.logprobs, known, chunk.start + 1,
            output.finish_reason, output.stop_token_id, output.failure,
        )  # fmt: skip

    def _draw(self, slots: list[int]) -> list[int]:
        """One forward: each rank knows a part of each slot's hash, and the sum of the parts names the token."""
        time.sleep(self.step_seconds)
        parts = torch.tensor([self._part(self.slots[slot]) for slot in slots], dtype=torch.int64).reshape(-1, 1)
        total = self.transport.gather(parts).sum(dim=0)
        self.transport.check()
        return [int(value) % VOCABULARY_SIZE for value in total]

    def _part(self, held: HashSlot) -> int:
        text = f"{self.transport.rank}|{held.request.sampling.seed}|{held.history}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")

    def _output(self, slot: int, token: int) -> SlotOutput:
        held = self.slots[slot]
        if (failure := self.failures.get(held.request.request_id)) is not None:
            del self.slots[slot]
            return SlotOutput(slot, failure=failure)
        limits = held.request.limits
        reason, stop = None, None
        if limits.max_tokens == 0:
            del self.slots[slot]
            return SlotOutput(slot, finish_reason=FinishReason.LENGTH)
        held.history.append(token)
        held.num_output_tokens += 1
        if token in limits.stop_token_ids or (token == EOS_TOKEN_ID and not limits.ignore_eos):
            reason, stop = FinishReason.STOP, token
        elif held.num_output_tokens == limits.max_tokens:
            reason = FinishReason.LENGTH
        if reason is not None:
            del self.slots[slot]
        logprobs = () if held.request.num_top_logprobs is None else (TokenLogprobs(-float(token)),)
        return SlotOutput(slot, (token,), logprobs, finish_reason=reason, stop_token_id=stop)
