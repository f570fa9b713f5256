"""Which prompt tokens a step computes: shortest remaining prompt first, none passed over for long."""

from collections.abc import Iterable

from twinspark_engine.scheduler.plan import CELL_TOKENS, PrefillChunk
from twinspark_engine.scheduler.running import RunningRequest

PASS_LIMIT = 8
"""A prompt passed over this many steps in a row goes before shorter ones."""


def choose_chunks(prefilling: Iterable[RunningRequest], budget_tokens: int) -> tuple[PrefillChunk, ...]:
    """Fill one forward of at most budget_tokens prompt rows; books nothing.

    A chunk ends at a multiple of CELL_TOKENS or at its prompt's end, so that cells are never cut elsewhere.
    """
    chunks = []
    left = budget_tokens
    for running in sorted(prefilling, key=_turn):
        num_tokens = running.num_remaining_prompt_tokens
        if num_tokens > left:
            num_tokens = left // CELL_TOKENS * CELL_TOKENS
        if num_tokens > 0:
            chunks.append(PrefillChunk(running.slot, running.num_computed_tokens, num_tokens))
            left -= num_tokens
    return tuple(chunks)


def _turn(running: RunningRequest) -> tuple[bool, int, float, int]:
    """Sort key: long passed over, then shortest remaining, then oldest."""
    waited_long = running.times_passed_over >= PASS_LIMIT
    remaining = 0 if waited_long else running.num_remaining_prompt_tokens
    return (not waited_long, remaining, running.admitted_at, running.slot)
