"""Segments of a forward: the runs of rows that belong to one slot.

Rows are packed: the rows of a slot lie side by side in ascending position. Slot -1 marks a padding row, which belongs
to no segment. Ops that keep state per slot walk segments, and so do their checks.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

PADDING_SLOT = -1


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows [start, stop) of a forward: consecutive tokens of one slot, the first at `position`."""

    slot: int
    start: int
    stop: int
    position: int

    @property
    def length(self) -> int:
        """Number of rows."""
        return self.stop - self.start

    @property
    def end(self) -> int:
        """Position behind the last row."""
        return self.position + self.length


def split_segments(slots: Tensor, positions: Tensor) -> list[Segment]:
    """Segments of `slots` and `positions` (int64 [T]) in row order, without padding rows.

    Raises ValueError if a slot has two segments, or if positions inside one do not ascend by one.
    """
    position_list = positions.tolist()
    segments = []
    start = 0
    for slot, run in groupby(slots.tolist()):
        stop = start + len(list(run))
        if slot != PADDING_SLOT:
            segments.append(Segment(slot, start, stop, position_list[start]))
            if position_list[start:stop] != list(range(position_list[start], position_list[start] + stop - start)):
                raise ValueError(f"positions: must ascend by one inside slot {slot}, got rows {start} to {stop}")
        start = stop
    if len({segment.slot for segment in segments}) != len(segments):
        raise ValueError(f"slots: the rows of a slot must lie side by side, got {slots.tolist()}")
    return segments


def uniform_runs(segments: Sequence[Segment]) -> Iterator[list[Segment]]:
    """Yield neighbours of one length with no padding between them: a run is a plain [segments, length, ...] batch."""
    run: list[Segment] = []
    for segment in segments:
        if run and (segment.start != run[-1].stop or segment.length != run[-1].length):
            yield run
            run = []
        run.append(segment)
    if run:
        yield run


def slot_index(segments: Sequence[Segment], device: torch.device) -> Tensor:
    """int64 [segments]: the slot of each."""
    return torch.tensor([segment.slot for segment in segments], dtype=torch.int64, device=device)


def check_rows(rows: int, slots: Tensor, positions: Tensor) -> None:
    """Raise unless `slots` and `positions` are int64 [rows]."""
    for name, tensor in (("slots", slots), ("positions", positions)):
        if tensor.dtype != torch.int64:
            raise TypeError(f"{name}: must be int64, got {tensor.dtype}")
        if tensor.shape != (rows,):
            raise ValueError(f"{name}: must have shape ({rows},), got {tuple(tensor.shape)}")


def check_shape(name: str, tensor: Tensor, shape: tuple[int | None, ...]) -> None:
    """Raise ValueError unless `tensor` has this shape; None stands for any size."""
    if tensor.dim() != len(shape) or any(
        want not in (None, got) for want, got in zip(shape, tensor.shape, strict=True)
    ):
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"{name}: must have shape ({wanted}), got {tuple(tensor.shape)}")
