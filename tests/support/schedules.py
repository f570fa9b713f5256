"""Ways to compute the same tokens: which rows of which slots run together, for ops that keep state per slot.

A schedule is a list of forwards, a forward a list of chunks, a chunk some consecutive tokens of one slot (or padding
rows). `run_schedule` feeds an op the packed rows of each forward and gives every slot its output rows back, so that
two schedules of the same tokens can be compared bit for bit.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor

PADDING = -1


@dataclass(frozen=True, slots=True)
class Chunk:
    """Tokens [start, stop) of a slot's sequence; slot -1: so many padding rows."""

    slot: int
    start: int
    stop: int


Forward = Sequence[Chunk]
Schedule = Sequence[Forward]
PackedOp = Callable[..., Tensor | None]


def run_schedule(
    op: PackedOp, sequences: Mapping[int, Sequence[Tensor]], schedule: Schedule, first_position: int = 0
) -> dict[int, Tensor]:
    """Call `op(*rows, slots, positions)` for each forward; the output rows of each slot, in order.

    `sequences[slot]` are row-aligned tensors, token i at position `first_position` + i. Padding rows hold NaN, and
    what the op answers for them must be finite.
    """
    outputs: dict[int, list[Tensor]] = {slot: [] for slot in sequences}
    example = next(iter(sequences.values()))
    for forward in schedule:
        rows = [torch.cat([_chunk_rows(sequences, chunk, x, i) for chunk in forward]) for i, x in enumerate(example)]
        slots = torch.cat([torch.full((chunk.stop - chunk.start,), chunk.slot) for chunk in forward])
        positions = torch.cat([torch.arange(chunk.start, chunk.stop) + first_position for chunk in forward])
        out = op(*rows, slots, positions)
        if out is None:
            continue
        assert len(out) == len(slots)
        for chunk, part in zip(forward, out.split([chunk.stop - chunk.start for chunk in forward]), strict=True):
            if chunk.slot == PADDING:
                assert part.isfinite().all(), "a padding row must give finite output"
            else:
                outputs[chunk.slot].append(part)
    return {slot: torch.cat(parts) for slot, parts in outputs.items() if parts}


def _chunk_rows(sequences: Mapping[int, Sequence[Tensor]], chunk: Chunk, like: Tensor, index: int) -> Tensor:
    if chunk.slot == PADDING:
        return torch.full((chunk.stop - chunk.start, *like.shape[1:]), torch.nan).to(like.dtype)
    return sequences[chunk.slot][index][chunk.start : chunk.stop]


def alone(lengths: Mapping[int, int]) -> list[list[Chunk]]:
    """Each sequence whole, by itself."""
    return [[Chunk(slot, 0, length)] for slot, length in lengths.items()]


def together(lengths: Mapping[int, int], padding: int = 0) -> list[list[Chunk]]:
    """All sequences whole in one forward, last slot first, `padding` rows between them and at the end."""
    forward = []
    for slot, length in reversed(list(lengths.items())):
        forward.append(Chunk(slot, 0, length))
        if padding:
            forward.append(Chunk(PADDING, 0, padding))
    return [forward]


def chunked(lengths: Mapping[int, int], seed: int, unit: int = 64, most: int = 4) -> list[list[Chunk]]:
    """Chunks of 1 to `most` times `unit` tokens, or to the end, of randomly chosen slots in each forward."""
    return list(_random_forwards(lengths, Random(seed), lambda random: unit * random.randint(1, most)))


def windows(lengths: Mapping[int, int], seed: int, most: int = 16) -> list[list[Chunk]]:
    """Windows of 1 to `most` rows of randomly chosen slots in each forward."""
    return list(_random_forwards(lengths, Random(seed), lambda random: random.randint(1, most)))


def one_by_one(lengths: Mapping[int, int]) -> list[list[Chunk]]:
    """One row of every slot that still has one in each forward."""
    return [
        [Chunk(slot, step, step + 1) for slot, length in lengths.items() if step < length]
        for step in range(max(lengths.values()))
    ]


def in_forwards_of(rows: int, lengths: Mapping[int, int]) -> list[list[Chunk]]:
    """Each sequence by itself, `rows` rows (at its end fewer) in a forward."""
    return [
        [Chunk(slot, first, min(first + rows, length))]
        for slot, length in lengths.items()
        for first in range(0, length, rows)
    ]


def with_thread_counts(schedules: Sequence[Schedule]) -> Iterator[tuple[Schedule, int]]:
    """Each schedule with one thread, the first and the last also with two (slow where others use the CPUs)."""
    for schedule in schedules:
        yield schedule, 1
    yield schedules[0], 2
    yield schedules[-1], 2


def _random_forwards(
    lengths: Mapping[int, int], random: Random, draw: Callable[[Random], int]
) -> Iterator[list[Chunk]]:
    done = dict.fromkeys(lengths, 0)
    while waiting := [slot for slot, length in lengths.items() if done[slot] < length]:
        forward = []
        for slot in random.sample(waiting, random.randint(1, len(waiting))):
            stop = min(lengths[slot], done[slot] + draw(random))
            forward.append(Chunk(slot, done[slot], stop))
            done[slot] = stop
            if random.random() < 0.3:
                forward.append(Chunk(PADDING, 0, random.randint(1, 3)))
        yield forward
