"""Which part of a split axis belongs to this rank: equal contiguous parts in rank order."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RankSplit:
    """One rank of several."""

    rank: int
    world_size: int

    def part(self, size: int) -> slice:
        """This rank's range of an axis of `size` entries; size is a multiple of world_size (the plan checked it)."""
        width = size // self.world_size
        return slice(self.rank * width, (self.rank + 1) * width)
