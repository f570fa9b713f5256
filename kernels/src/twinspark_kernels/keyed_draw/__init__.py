"""Keyed Gumbel draw: noise that is a function of (seed, absolute position, token id), and the draw with it.

1. Inputs: seeds [T] int64 (the bits of a uint64: see `to_signed`), positions [T] int64 of the token being drawn,
   ids [T, n] or [1, n] int64, scaled [T, n] float64 (logits over temperature), kept [T, n] bool with one kept at least.
2. Outputs: new tensors, written in full.
3. Arithmetic: uint64 with wraparound, then float64.
4. Row invariance: a function of the row alone.
5. Rank order: noise does not depend on the rank that computes it; equal scores go to the lower id.
6. Side effects: none. Workspace: a few int64 copies of ids.
7. Graph capture: no value is read back.
8. Limits: tested on CPU.
"""

import torch
from torch import Tensor

from twinspark_kernels.keyed_draw import reference
from twinspark_kernels.keyed_draw.reference import to_signed

__all__ = ["draw", "gumbel", "to_signed", "uniform"]


def _check(seeds: Tensor, positions: Tensor, ids: Tensor) -> None:
    for name, tensor in (("seeds", seeds), ("positions", positions), ("ids", ids)):
        if tensor.dtype != torch.int64:
            raise ValueError(f"{name} must be int64, got {tensor.dtype}")
    rows = seeds.shape[0]
    if seeds.dim() != 1 or positions.shape != seeds.shape or ids.dim() != 2 or ids.shape[0] not in (1, rows):
        raise ValueError(f"shapes differ: {tuple(seeds.shape)}, {tuple(positions.shape)}, {tuple(ids.shape)}")


def uniform(seeds: Tensor, positions: Tensor, ids: Tensor) -> Tensor:
    """Uniform numbers in (0, 1), float64 [T, n]."""
    _check(seeds, positions, ids)
    return reference.uniform(seeds, positions, ids)


def gumbel(seeds: Tensor, positions: Tensor, ids: Tensor) -> Tensor:
    """Standard Gumbel noise, float64 [T, n]."""
    _check(seeds, positions, ids)
    return reference.gumbel(seeds, positions, ids)


def draw(scaled: Tensor, ids: Tensor, kept: Tensor, seeds: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Column [T] of the largest scaled + noise among the kept columns, ties to the lower id, and that score [T]."""
    _check(seeds, positions, ids)
    if scaled.dtype != torch.float64 or scaled.dim() != 2 or kept.shape != scaled.shape:
        raise ValueError(f"scaled must be float64 [T, n], kept alike, got {scaled.dtype} {tuple(scaled.shape)}")
    return reference.draw(scaled, ids.expand_as(scaled), kept, seeds, positions)
