"""The input rows of the two forwards of a step: allocated once, written in place, read by views of fixed sizes."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from twinspark_engine.model.rows import PADDING_SLOT, Rows
from twinspark_engine.runner.slot_request import SlotRequest
from twinspark_kernels.row_class import RowClass

PROMPT_ROWS_STEP = 64


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive positions of one slot's prompt."""

    slot: int
    running: SlotRequest
    start: int
    num_rows: int

    @property
    def end(self) -> int:
        """First position after the segment."""
        return self.start + self.num_rows


class RowBuffers:
    """Rows of one class. A forward has as many rows as the smallest allowed count that holds them."""

    def __init__(self, row_class: RowClass, row_counts: Sequence[int]) -> None:
        """row_counts: the allowed numbers of rows, ascending."""
        self._row_class = row_class
        self._row_counts = tuple(row_counts)
        most = self._row_counts[-1]
        self._ids = torch.zeros(most, dtype=torch.int64)
        self._slots = torch.full((most,), PADDING_SLOT, dtype=torch.int64)
        self._positions = torch.zeros(most, dtype=torch.int64)

    def write_segments(self, segments: Sequence[Segment]) -> Rows:
        """Prompt rows. O(segments) calls."""
        first = 0
        for segment in segments:
            last = first + segment.num_rows
            count = self._rounded(last)
            self._ids[first:last] = segment.running.prompt_ids[segment.start : segment.end]
            self._slots[first:last] = segment.slot
            torch.arange(segment.start, segment.end, out=self._positions[first:last])
            first = last
        return self._rows(first, count)

    def write_tokens(self, slots: Sequence[int], ids: Sequence[int], positions: Sequence[int]) -> Rows:
        """Decode rows, one a slot. O(slots)."""
        used = len(slots)
        count = self._rounded(used)
        self._slots[:used] = torch.tensor(slots)
        self._ids[:used] = torch.tensor(ids)
        self._positions[:used] = torch.tensor(positions)
        return self._rows(used, count)

    def data_pointers(self) -> tuple[int, ...]:
        """Addresses of the buffers, which never change."""
        return self._ids.data_ptr(), self._slots.data_ptr(), self._positions.data_ptr()

    def _rounded(self, used: int) -> int:
        for count in self._row_counts:
            if count >= used:
                return count
        raise ValueError(f"{used} rows exceed the {self._row_counts[-1]} that were allocated")

    def _rows(self, used: int, count: int) -> Rows:
        self._ids[used:count] = 0
        self._slots[used:count] = PADDING_SLOT
        self._positions[used:count] = 0
        return Rows(self._row_class, self._ids[:count], self._slots[:count], self._positions[:count])


def prompt_row_counts(max_rows: int) -> tuple[int, ...]:
    """Multiples of 64 up to max_rows, rounded up: a prompt row's cell and its tile in products have 64 rows anyway."""
    return tuple(range(PROMPT_ROWS_STEP, max_rows + PROMPT_ROWS_STEP, PROMPT_ROWS_STEP))


def decode_row_counts(max_rows: int) -> tuple[int, ...]:
    """Powers of two, up to the first that holds max_rows."""
    counts = [1]
    while counts[-1] < max_rows:
        counts.append(2 * counts[-1])
    return tuple(counts)
