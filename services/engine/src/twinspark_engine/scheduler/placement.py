"""Which free slot a request gets: the one that saves most work, else the one that rested longest."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from twinspark_engine.request import Request


@dataclass(frozen=True, slots=True)
class StoredPrefix:
    """What a slot has or can read of a request's prompt; nothing, where no prefix is stored."""

    num_tokens: int = 0
    """Prompt tokens that need not be computed in this slot."""
    num_blocks: int = 0
    """KV blocks of them that lie in the slot already."""


FindPrefix = Callable[[Request, int], StoredPrefix]
"""The stored prefix of a request in a slot."""


def find_no_prefix(_request: Request, _slot: int) -> StoredPrefix:
    """Nothing is stored."""
    return StoredPrefix()


@dataclass(frozen=True, slots=True)
class SlotCandidate:
    """A free slot, as far as the choice looks at it."""

    slot: int
    prefix: StoredPrefix
    last_turn: int
    """Number of the admission that took the slot last; -1: none did."""


def choose_slot(candidates: Iterable[SlotCandidate]) -> int:
    """Longest stored prefix, then most blocks, then least recently given out, then the lowest number."""
    return min(candidates, key=lambda c: (-c.prefix.num_tokens, -c.prefix.num_blocks, c.last_turn, c.slot)).slot
