"""The blocks of all slots on one rank: which ones by replaying the plan's admissions and ends, and the device's table.

Every rank comes to the same blocks, so none travels. `check` compares what must agree; it reads the device.
"""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from twinspark_engine.kv_cache.block_reservations import BlockReservations


class PagedState(Protocol):
    """State whose rows lie in blocks."""

    @property
    def num_blocks(self) -> int:
        """Blocks that slots may have."""
        ...

    @property
    def table(self) -> Tensor:
        """int32 [slots + 1, blocks of the context]; the last row is that of padding rows."""
        ...

    def map_slot(self, slot: int, blocks: Sequence[int]) -> None:
        """Give a slot these blocks, in order of position; none: it may not write."""
        ...

    def find_null_write(self) -> int | None:
        """Number of a family of rows whose null block is no longer zero; None: all are."""
        ...


class CacheCheckError(Exception):
    """Rows were written where no request has a block, or tables disagree: no reply can be trusted any more."""


class SlotBlocks:
    """Called by the runner only."""

    def __init__(self, state: PagedState, num_slots: int) -> None:
        self._state = state
        self._num_slots = num_slots
        self._reservations = BlockReservations(state.num_blocks, num_slots)
        self._trash = state.table[-1].tolist()

    @property
    def num_free_blocks(self) -> int:
        """Blocks that no slot has."""
        return self._reservations.num_free_blocks

    @property
    def num_used_blocks(self) -> int:
        """Blocks that slots have."""
        return self._state.num_blocks - self._reservations.num_free_blocks

    def reserve(self, slot: int, num_tokens: int) -> None:
        """Give a free slot blocks for this many positions. Raises ValueError where there are too few."""
        self._state.map_slot(slot, self._reservations.reserve(slot, num_tokens))

    def release(self, slot: int) -> None:
        """Take them back: a row that is still written for this slot lands in the null block, and is found."""
        self._reservations.release(slot)
        self._state.map_slot(slot, ())

    def reset(self) -> None:
        """No slot has blocks."""
        self._reservations = BlockReservations(self._state.num_blocks, self._num_slots)
        for slot in range(self._num_slots):
            self._state.map_slot(slot, ())

    def check(self) -> None:
        """Raise CacheCheckError or BlockCountError unless all books agree and the null block is zero."""
        self._reservations.check()
        free = set(self._reservations.free_slots)
        tables = self._state.table.tolist()
        for slot in range(self._num_slots):
            blocks = () if slot in free else self._reservations.table(slot)
            expected = [*blocks, *[0] * (len(tables[slot]) - len(blocks))]
            if slot not in free and tables[slot] != expected:
                raise CacheCheckError(f"the device's table of slot {slot} is not the one that was reserved")
        if tables[-1] != self._trash:
            raise CacheCheckError("padding rows no longer go to the trash block")
        family = self._state.find_null_write()
        if family is not None:
            raise CacheCheckError(f"the null block of family {family} was written: a row had no block of its own")
