"""One buffer that an op borrows for its largest temporary: it grows in steps and is kept, so that memory has a bound.

A temporary of a new size in every forward costs a caching allocator a new block each time; here a longer context makes
the one buffer larger, and nothing else.
"""

import torch
from torch import Tensor

STEP_BYTES = 2**20


class GrowingScratch:
    """Used by one thread and by one op at a time. It begins with one step."""

    def __init__(self) -> None:
        self._bytes = torch.empty(STEP_BYTES, dtype=torch.uint8)

    @property
    def nbytes(self) -> int:
        """Bytes that are held now."""
        return self._bytes.nbytes

    def take(self, rows: int, width: int) -> Tensor:
        """fp32 [rows, width] of any content, valid until the next call."""
        needed = 4 * rows * width
        if needed > self.nbytes:
            self._bytes = torch.empty(0, dtype=torch.uint8)  # the old buffer goes first
            self._bytes = torch.empty(round_up_to_step(needed), dtype=torch.uint8)
        return self._bytes[:needed].view(torch.float32).view(rows, width)


def round_up_to_step(num_bytes: int) -> int:
    """Bytes that the buffer has after it grew for this many."""
    return -(-num_bytes // STEP_BYTES) * STEP_BYTES
