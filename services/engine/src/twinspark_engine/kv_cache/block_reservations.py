"""Which blocks of the KV cache a request holds: reserved in full at admission, given back when it ends.

Every rank has one of these and replays the same admissions and ends, so all ranks give a request the same blocks
without sending one: a reservation takes the lowest free blocks, and depends on which are free, never on the order in
which they were given back.
"""

import heapq

BLOCK_TOKENS = 256
"""Positions of one block."""
FIRST_BLOCK = 2
"""Blocks 0 and 1 belong to nobody: the null block, which stays zero, and the trash block of padding rows."""


class BlockReservations:
    """`can_x` asks, `reserve` does and cannot fail after `can_reserve`. Which slot a request gets is the caller's."""

    def __init__(self, num_blocks: int, num_slots: int) -> None:
        """num_blocks: those that requests may have, numbered from FIRST_BLOCK on."""
        self.num_blocks = num_blocks
        self._free = list(range(FIRST_BLOCK, FIRST_BLOCK + num_blocks))  # a heap
        self._tables: list[tuple[int, ...] | None] = [None] * num_slots

    @staticmethod
    def blocks_for(num_tokens: int) -> int:
        """Blocks that hold this many positions."""
        return -(-num_tokens // BLOCK_TOKENS)

    def can_ever_reserve(self, num_tokens: int) -> bool:
        """Whether an empty pool could hold a request of this many tokens."""
        return num_tokens > 0 and self.blocks_for(num_tokens) <= self.num_blocks

    def can_reserve(self, num_tokens: int) -> bool:
        """Whether enough blocks are free for a request of this many tokens."""
        return num_tokens > 0 and self.blocks_for(num_tokens) <= len(self._free)

    def reserve(self, slot: int, num_tokens: int) -> tuple[int, ...]:
        """Give a free slot the lowest free blocks, ascending: its table, in order of position.

        Raises ValueError where the slot is in use or can_reserve is false.
        """
        if self._tables[slot] is not None:
            raise ValueError(f"slot {slot} is in use")
        if not self.can_reserve(num_tokens):
            raise ValueError(f"{num_tokens} tokens need {self.blocks_for(num_tokens)} blocks of {len(self._free)} free")
        table = tuple(heapq.heappop(self._free) for _ in range(self.blocks_for(num_tokens)))
        self._tables[slot] = table
        return table

    def release(self, slot: int) -> None:
        """Give back a slot and its blocks. Raises ValueError if it is free."""
        for block in self.table(slot):
            heapq.heappush(self._free, block)
        self._tables[slot] = None

    def table(self, slot: int) -> tuple[int, ...]:
        """Blocks of a slot in order of position. Raises ValueError if it is free."""
        table = self._tables[slot]
        if table is None:
            raise ValueError(f"slot {slot} is free")
        return table

    @property
    def num_free_blocks(self) -> int:
        """Blocks that no request holds."""
        return len(self._free)

    @property
    def free_slots(self) -> tuple[int, ...]:
        """Slots that hold no request, ascending."""
        return tuple(slot for slot, table in enumerate(self._tables) if table is None)

    def check(self) -> None:
        """Raise BlockCountError unless each block is free or in one table, and in one place only."""
        held = [block for table in self._tables if table is not None for block in table]
        if sorted((*held, *self._free)) != list(range(FIRST_BLOCK, FIRST_BLOCK + self.num_blocks)):
            raise BlockCountError(
                f"{len(held)} held and {len(self._free)} free of {self.num_blocks} blocks do not add up"
            )


class BlockCountError(Exception):
    """Blocks were lost, or given out twice: the bookkeeping is wrong, and nothing more may be written."""
