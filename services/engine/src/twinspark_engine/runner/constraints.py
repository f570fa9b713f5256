"""The grammars of the slots on one rank: asks for masks as tokens are committed, and has them when rows are drawn.

A rank without a mask says so in the exchange of candidates, which all ranks join, so each of them ends the same
requests in the same step.
"""

import time
from collections.abc import Sequence

from twinspark_engine.masks.source import MaskAccess, Masks, MaskStream
from twinspark_engine.request import ConstraintFailure, Request


class Constraints:
    """Called by the runner only."""

    def __init__(
        self,
        access: MaskAccess,
        vocabulary_size: int,
        end_token_ids: frozenset[int],
        masked_token_ids: frozenset[int],
    ) -> None:
        """end_token_ids end the output of any request; masked_token_ids are never drawn."""
        self._access = access
        self._vocabulary_size = vocabulary_size
        self._end_token_ids = end_token_ids
        self._masked_token_ids = masked_token_ids
        self._drawable = _pack_drawable(vocabulary_size, masked_token_ids)
        self._streams: dict[int, MaskStream] = {}
        self.wait_us = 0
        """Time that waits took since the start."""
        self.num_masked_rows = 0
        """Rows that got a mask since the start."""

    def admit(self, slot: int, request: Request) -> None:
        """Ask for the masks of the first token, which the service makes while the prompt is computed."""
        if request.grammar is None:
            return
        ends = (self._end_token_ids | request.limits.stop_token_ids) - self._masked_token_ids
        stream = self._access.source.open(request.request_id, request.grammar, sorted(ends))
        self._streams[slot] = stream
        stream.post(())

    def commit(self, slot: int, token_ids: Sequence[int]) -> None:
        """Ask for the masks of the window that follows these tokens, if the slot is constrained."""
        stream = self._streams.get(slot)
        if stream is not None:
            stream.post(token_ids)

    def free(self, slot: int) -> None:
        """Forget the slot's request, if it is constrained."""
        stream = self._streams.pop(slot, None)
        if stream is not None:
            stream.close()

    def reset(self) -> None:
        """Forget all requests."""
        for slot in list(self._streams):
            self.free(slot)

    def collect(self, slots: Sequence[int]) -> dict[int, Masks]:
        """What this rank has of those slots that are constrained: one mask a row of the window. Waits for them."""
        constrained = [slot for slot in slots if slot in self._streams]
        if not constrained:
            return {}
        started = time.monotonic()
        deadline = started + self._access.timeout_seconds
        answers = {slot: self._streams[slot].wait(deadline - time.monotonic()) for slot in constrained}
        self.wait_us += int((time.monotonic() - started) * 1e6)
        collected = {slot: self._check(answer) for slot, answer in answers.items()}
        self.num_masked_rows += sum(not isinstance(masks, ConstraintFailure) for masks in collected.values())
        return collected

    def _check(self, answer: Masks) -> Masks:
        """Refuse a mask that leaves no id to draw."""
        if isinstance(answer, ConstraintFailure):
            return answer
        can_draw = all(int.from_bytes(mask, "little") & self._drawable for mask in answer)
        return answer if can_draw else ConstraintFailure.STUCK


def _pack_drawable(vocabulary_size: int, masked_token_ids: frozenset[int]) -> int:
    """An integer whose bit i says whether id i may be drawn."""
    bits = (1 << vocabulary_size) - 1
    for token_id in masked_token_ids:
        bits &= ~(1 << token_id)
    return bits
