"""Which prompt tokens a step computes: shortest remaining prompt first, none passed over for long."""

from collections.abc import Collection
from dataclasses import dataclass

from twinspark_engine.scheduler.plan import CELL_TOKENS, PrefillChunk
from twinspark_engine.scheduler.running import RunningRequest

PASS_LIMIT = 8
"""A prompt passed over by this many forwards in a row goes before shorter ones.

So each prompt has rows in one of PASS_LIMIT + number of slots forwards over prompts: at most all other slots have
waited longer, and every forward serves the one that waited longest.
"""


@dataclass(frozen=True, slots=True)
class ChunkBudget:
    """Rows of one forward; both sizes are at least CELL_TOKENS."""

    long_tokens: int
    """Rows of prompts that are not short."""
    forward_tokens: int
    """Rows of all prompts."""
    is_decode_owed: bool = False
    """Only short prompts, and those passed over for long, have rows."""


def choose_chunks(prefilling: Collection[RunningRequest], budget: ChunkBudget) -> tuple[PrefillChunk, ...]:
    """Fill one forward; books nothing.

    A chunk ends at a multiple of CELL_TOKENS or at its prompt's end, so that cells are never cut elsewhere.
    """
    chunks = []
    left, left_for_long = budget.forward_tokens, budget.long_tokens
    for running in sorted(prefilling, key=_turn):
        if not running.is_short and budget.is_decode_owed and not _waited_long(running):
            continue
        num_tokens = _fitting_tokens(running, left if running.is_short else min(left, left_for_long))
        if num_tokens > 0:
            chunks.append(PrefillChunk(running.slot, running.num_computed_tokens, num_tokens))
            left -= num_tokens
            left_for_long -= 0 if running.is_short else num_tokens
    return tuple(chunks)


def book_chunks(prefilling: Collection[RunningRequest], chunks: Collection[PrefillChunk]) -> None:
    """Book chunks that were chosen from these requests, and who was passed over."""
    if not chunks:
        return
    num_tokens = {chunk.slot: chunk.num_scheduled_tokens for chunk in chunks}
    for running in prefilling:
        running.times_passed_over = 0 if running.slot in num_tokens else running.times_passed_over + 1
        running.num_computed_tokens += num_tokens.get(running.slot, 0)


def _fitting_tokens(running: RunningRequest, room: int) -> int:
    remaining = running.num_remaining_prompt_tokens
    return remaining if remaining <= room else room // CELL_TOKENS * CELL_TOKENS


def _waited_long(running: RunningRequest) -> bool:
    return running.times_passed_over >= PASS_LIMIT


def _turn(running: RunningRequest) -> tuple[int, bool, bool, int, int]:
    """Sort key: passed over for longest, then foreground, then short, then shortest remaining, then oldest."""
    waited = running.times_passed_over if _waited_long(running) else 0
    is_background = running.request.is_background
    return (-waited, is_background, not running.is_short, running.num_remaining_prompt_tokens, running.turn)
