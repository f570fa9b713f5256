"""The largest logits of each row in an exact order, and each row's log of the sum of exponentials: plain PyTorch."""

import torch
from torch import Tensor

BLOCK = 1024
"""Columns added in one go by log_sum_exp. A fixed block keeps a row's bits at any number of rows and threads."""


def top_candidates(logits: Tensor, count: int, id_offset: int) -> tuple[Tensor, Tensor]:
    """Values [T, count] and ids [T, count] of the largest logits of each row, by (value descending, id ascending).

    `topk` breaks ties arbitrarily, so it only finds the threshold: everything above it is kept, then the lowest ids
    among its equals. A NaN counts as +inf, so that it comes first and is seen by whoever checks the first value.
    """
    values = logits.nan_to_num(nan=torch.inf, posinf=torch.inf, neginf=-torch.inf)
    threshold = values.topk(count, dim=-1).values[:, -1:]
    above = values > threshold
    equal = values == threshold
    missing = count - above.sum(dim=-1, keepdim=True)
    kept = above | (equal & (equal.cumsum(dim=-1) <= missing))
    columns = kept.nonzero()[:, 1].view(-1, count)
    ordered, order = values.gather(1, columns).sort(dim=-1, descending=True, stable=True)
    return ordered, columns.gather(1, order) + id_offset


def log_sum_exp(logits: Tensor) -> Tensor:
    """Natural logarithm of the sum of exp of each row of [T, V], float64 [T]."""
    rows, width = logits.shape
    largest = logits.amax(dim=-1, keepdim=True).double()
    blocks = -(-width // BLOCK)
    weights = torch.zeros(rows, blocks * BLOCK, dtype=torch.float64, device=logits.device)
    torch.exp(logits.double() - largest, out=weights[:, :width])
    return weights.view(rows, blocks, BLOCK).sum(dim=-1).sum(dim=-1).log() + largest[:, 0]
