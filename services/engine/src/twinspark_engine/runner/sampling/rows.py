"""What the sampler is told about each row, and what it answers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from twinspark_engine.masks.source import Mask
from twinspark_engine.request import ConstraintFailure, SamplingParams
from twinspark_engine.scheduler.plan import TokenLogprobs
from twinspark_kernels.keyed_draw import to_signed

MIN_TEMPERATURE = 1e-6
"""Divisor of the logits at least, so that a tiny temperature does not overflow."""
NO_FAILURE = 0
"""A row that can be drawn, among the numbers of ConstraintFailure."""


@dataclass(frozen=True, slots=True)
class DrawRow:
    """One row of logits from which one token is drawn."""

    slot: int
    """Whose committed tokens stand before the row."""
    params: SamplingParams
    position: int
    """Absolute position of the token being drawn; the first output token has the prompt's length."""
    path: tuple[int, ...] = ()
    """Drafted ids between the slot's committed tokens and this row: the rows of a window see each its own history."""
    masks_ends: bool = False
    """End tokens and stop ids may not be drawn yet."""
    num_top_logprobs: int | None = None
    """Most likely ids to report; None: no log probabilities at all."""
    constraint: Mask | ConstraintFailure | None = None
    """The ids that the request's grammar allows here, or why this rank cannot tell; None: it has no grammar."""

    @property
    def mask(self) -> Mask | None:
        """The ids that may be drawn; None: all, or nobody knows."""
        return None if isinstance(self.constraint, ConstraintFailure) else self.constraint

    @property
    def failure(self) -> int:
        """What this rank tells the others of the row: a ConstraintFailure, or NO_FAILURE."""
        return self.constraint if isinstance(self.constraint, ConstraintFailure) else NO_FAILURE

    @property
    def is_adjusted(self) -> bool:
        """The request or its history changes logits before they are drawn from."""
        return self.masks_ends or self.params.changes_logits

    @property
    def is_greedy(self) -> bool:
        """The largest logit is taken; no filter applies."""
        return self.params.temperature <= 0

    @property
    def needs_total(self) -> bool:
        """The nucleus is measured against the whole vocabulary."""
        return not self.is_greedy and self.params.top_k == 0 and self.params.top_p < 1

    @property
    def draws_from_all(self) -> bool:
        """No cut bounds the number of ids that may be drawn."""
        return not self.is_greedy and self.params.top_k == 0 and self.params.top_p >= 1


@dataclass(frozen=True, slots=True)
class DrawnToken:
    """The token of one row."""

    token_id: int
    logprobs: TokenLogprobs | None


Drawn = DrawnToken | ConstraintFailure
"""What a row gives: ranks agree on failures."""


@dataclass(frozen=True, slots=True)
class DrawTensors:
    """The parameters of T rows on the device."""

    seeds: Tensor  # [T] int64, the bits of the uint64 seeds
    positions: Tensor  # [T] int64
    top_k: Tensor  # [T] int64, 0: no cut
    slots: Tensor  # [T] int64
    masks_ends: Tensor  # [T] int64, 1 or 0
    temperatures: Tensor  # [T] float64, at least MIN_TEMPERATURE
    log_min_p: Tensor  # [T] float64, -inf: no cut
    repetition: Tensor  # [T] float64, 1: off
    frequency: Tensor  # [T] float64, 0: off
    presence: Tensor  # [T] float64, 0: off

    def select(self, index: Tensor) -> "DrawTensors":
        """The rows at index [n]."""
        return DrawTensors(*(getattr(self, field.name)[index] for field in fields(self)))


class DrawBuffers:
    """Sampling parameters of the rows of a step on the device: allocated once, written in place, read by views."""

    def __init__(self, max_rows: int) -> None:
        self._integers = torch.zeros(5, max_rows, dtype=torch.int64)
        self._floats = torch.zeros(5, max_rows, dtype=torch.float64)

    def write(self, rows: Sequence[DrawRow]) -> DrawTensors:
        """Put the parameters of rows into the first len(rows) places. O(rows)."""
        count = len(rows)
        if count > self._integers.shape[1]:
            raise ValueError(f"{count} rows exceed the {self._integers.shape[1]} that were allocated")
        self._integers[:, :count] = torch.tensor([_integers_of(row) for row in rows], dtype=torch.int64).T
        self._floats[:, :count] = torch.tensor([_floats_of(row) for row in rows], dtype=torch.float64).T
        return DrawTensors(*self._integers[:, :count], *self._floats[:, :count])

    def data_pointers(self) -> tuple[int, ...]:
        """Addresses of the buffers, which never change."""
        return self._integers.data_ptr(), self._floats.data_ptr()


def _integers_of(row: DrawRow) -> list[int]:
    return [to_signed(row.params.seed), row.position, row.params.top_k, row.slot, int(row.masks_ends)]


def _floats_of(row: DrawRow) -> list[float]:
    params = row.params
    log_min_p = math.log(params.min_p) if params.min_p > 0 else -math.inf
    penalties = [params.repetition_penalty, params.frequency_penalty, params.presence_penalty]
    return [max(params.temperature, MIN_TEMPERATURE), log_min_p, *penalties]
