"""Drives a model through given forwards: which rows of which sequence run together, in which slot and class."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from twinspark_engine.model.model import Model
from twinspark_engine.model.rows import PADDING_SLOT, Rows
from twinspark_engine.model.state import ModelState
from twinspark_kernels.row_class import RowClass


@dataclass(frozen=True, slots=True)
class Segment:
    """Positions start to stop of one sequence."""

    sequence: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Step:
    """One forward: segments of one class, in this order, and padding rows behind them."""

    row_class: RowClass
    segments: tuple[Segment, ...]
    padding: int = 0


def prompt_steps(length: int, chunk: int | None = None, sequence: int = 0) -> list[Step]:
    """A whole prompt in chunks of this many tokens (a multiple of 64), or in one."""
    chunk = chunk or max(length, 1)
    starts = range(0, length, chunk)
    return [Step(RowClass.PROMPT, (Segment(sequence, s, min(s + chunk, length)),)) for s in starts]


def window_steps(start: int, windows: Sequence[int], sequence: int = 0) -> list[Step]:
    """Decode windows of these sizes, from position start on."""
    steps = []
    for window in windows:
        steps.append(Step(RowClass.DECODE, (Segment(sequence, start, start + window),)))
        start += window
    return steps


def pack(step: Step, sequences: Sequence[Sequence[int]], slots: Sequence[int]) -> Rows:
    """The rows of one step; sequence i lives in slots[i]."""
    ids = [i for s in step.segments for i in sequences[s.sequence][s.start : s.stop]]
    row_slots = [slots[s.sequence] for s in step.segments for _ in range(s.start, s.stop)]
    positions = [p for s in step.segments for p in range(s.start, s.stop)]
    pad = step.padding
    return Rows(
        step.row_class,
        torch.tensor(ids + [0] * pad),
        torch.tensor(row_slots + [PADDING_SLOT] * pad),
        torch.tensor(positions + [0] * pad),
    )


def run_steps(
    model: Model, state: ModelState, sequences: Sequence[Sequence[int]], slots: Sequence[int], steps: Sequence[Step]
) -> list[Tensor]:
    """Run all steps and return for each sequence [computed positions, D + Vw]: hidden row and logits side by side."""
    found: list[list[Tensor]] = [[] for _ in sequences]
    for slot in slots:
        state.reset_slot(slot)
    for step in steps:
        rows = pack(step, sequences, slots)
        hidden = model.forward(rows, state)
        both = torch.cat([hidden, model.logits(hidden, step.row_class)], dim=1)
        sizes = [s.stop - s.start for s in step.segments]
        for segment, part in zip(step.segments, both.split([*sizes, step.padding]), strict=False):
            found[segment.sequence].append(part)
    return [torch.cat(parts) if parts else torch.empty(0) for parts in found]
