"""Compares our selection of pools and experts with the reference's, row by row, and goes on with the reference's.

A row may differ only where the reference's scores at the cut are nearly equal. Such a row goes on with the reference's
choice, so that the logits of all rows stay comparable. Where nothing differs, what ran is our own forward, untouched.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

from support.hf_models import HfShape
from support.hf_reference import HfRun, Selection
from twinspark_engine.model import dsa_layer, mlp
from twinspark_kernels.indexer import select_pools
from twinspark_kernels.router import route

NEAR_TIE = 1e-5


class SelectionMismatch(AssertionError):
    """A row chose other pools or experts than the reference, and not because of a near tie."""


@dataclass(frozen=True, slots=True)
class NearTie:
    """One row whose choice differs at a near tie."""

    kind: str
    layer: int
    position: int
    gap: float


@dataclass(slots=True)
class SelectionWatch:
    """Watches one sequence on every rank thread; `begin` each forward with the rows' positions."""

    run: HfRun
    shape: HfShape
    near_ties: set[NearTie] = field(default_factory=set)
    _thread: threading.local = field(default_factory=threading.local)

    def begin(self, positions: Tensor) -> None:
        """Called by a rank's thread before each forward."""
        self._thread.positions = positions
        self._thread.pools = iter(sorted(self.run.pools))
        self._thread.experts = iter(sorted(self.run.experts))

    def pools(self, *args: Any, **options: Any) -> Tensor:
        """In place of select_pools."""
        own = select_pools(*args, **options)
        layer = next(self._thread.pools)
        positions: Tensor = self._thread.positions
        selection = self.run.pools[layer]
        chosen = selection.chosen[positions]
        whole = (chosen + 1) * self.shape.pool - 1 <= positions[:, None]
        # Ascending, with the invalid ones last as -1.
        last = torch.iinfo(torch.int64).max
        chosen = chosen.where(whole, last).sort(dim=1).values
        reference = torch.full_like(own, -1)
        reference[:, : chosen.shape[1]] = chosen.where(chosen < last, -1)
        sparse = positions + 1 >= self.shape.dense_limit
        self._record("pools", layer, selection, ((own != reference).any(dim=1) & sparse))
        return reference

    def experts(self, x: Tensor, weight: Tensor, bias: Tensor, **options: Any) -> tuple[Tensor, Tensor]:
        """In place of route."""
        ids, weights = route(x, weight, bias, **options)
        layer = next(self._thread.experts)
        selection = self.run.experts[layer]
        reference = selection.chosen[self._thread.positions]
        differ = (ids.sort(dim=1).values != reference.sort(dim=1).values).any(dim=1)
        self._record("experts", layer, selection, differ)
        if not differ.any():
            return ids, weights
        scores = (x.double() @ weight.double().T).sigmoid().gather(1, reference)
        forced = (scores / scores.sum(dim=1, keepdim=True) * options["scaling"]).to(weights.dtype)
        return ids.where(~differ[:, None], reference), weights.where(~differ[:, None], forced)

    def _record(self, kind: str, layer: int, selection: Selection, differ: Tensor) -> None:
        if not differ.any():
            return
        gaps = selection.gap_at_cut()
        for position in self._thread.positions[differ].tolist():
            gap = gaps[position].item()
            if not gap < NEAR_TIE:
                raise SelectionMismatch(f"{kind} of layer {layer}, position {position}: gap at the cut {gap:.3g}")
            self.near_ties.add(NearTie(kind, layer, position, gap))

    @contextmanager
    def installed(self) -> Iterator[None]:
        """While open, the model's layers ask this watch."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dsa_layer, "select_pools", self.pools)
            patch.setattr(mlp, "route", self.experts)
            yield
