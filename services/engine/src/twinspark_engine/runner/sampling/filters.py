"""The cuts of a draw, on rows sorted by (logit descending, id ascending): top_k, the nucleus, min_p.

One nucleus rule for every top_k: masses are fixed point, so that sums are exact in any order and on any number of
ranks, and the wanted mass is found by rational arithmetic. All functions treat each row alone.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

FIXED_POINT = float(1 << 40)
"""Mass of the likeliest id. 2^40 times a vocabulary of 2^22 rows still fits in int64."""


def scale(logits: Tensor, temperatures: Tensor) -> Tensor:
    """float64 [T, n]: logits over temperature."""
    return logits.double() / temperatures[:, None]


def masses(scaled: Tensor, largest: Tensor) -> Tensor:
    """int64 [T, n]: floor(exp(scaled - largest) * 2^40), given the largest scaled logit [T] of the whole vocabulary."""
    return torch.floor(torch.exp(scaled - largest[:, None]) * FIXED_POINT).long()


def wanted_masses(top_p: Sequence[float], totals: Sequence[int]) -> Tensor:
    """int64 [T]: ceil(top_p * total), exactly. A top_p of 1 or more wants everything, which no prefix exceeds."""
    return torch.tensor([_wanted_mass(share, total) for share, total in zip(top_p, totals, strict=True)])


def _wanted_mass(top_p: float, total: int) -> int:
    if top_p >= 1:
        return torch.iinfo(torch.int64).max
    numerator, denominator = top_p.as_integer_ratio()
    return -(-numerator * total // denominator)


def keep_top_k(width: int, top_k: Tensor) -> Tensor:
    """bool [T, width]: the first top_k [T] columns; 0 keeps all."""
    columns = torch.arange(width)
    return (columns < top_k[:, None]) | (top_k[:, None] == 0)


def keep_nucleus(row_masses: Tensor, wanted: Tensor) -> Tensor:
    """bool [T, n]: the smallest prefix whose mass reaches wanted [T]; all columns if none does."""
    before = row_masses.cumsum(dim=-1) - row_masses
    return before < wanted[:, None]


def keep_min_p(scaled: Tensor, largest: Tensor, log_min_p: Tensor) -> Tensor:
    """bool [T, n]: scaled logits at least the largest [T] plus ln(min_p) [T]. A logit of -inf is never kept."""
    return (scaled >= (largest + log_min_p)[:, None]) & (scaled > -torch.inf)
