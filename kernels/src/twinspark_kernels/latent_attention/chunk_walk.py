"""The arithmetic of one walk over key chunks: fixed tiles of queries, a running maximum, sums rescaled to it."""

from dataclasses import dataclass

import torch
from torch import Tensor

TILE_ROWS = 8
# Each matrix of a batch starts and, where it is few rows high, each row starts on a 64-byte boundary: where an operand
# lies otherwise decides how a CPU's matrix product rounds.
ALIGNED_VALUES = 16


@dataclass(frozen=True, slots=True)
class ChunkWalk:
    """After some chunks, fp32: the largest score, the sum of exp(score - largest), and that sum weighted by keys.

    peak, total [B, TILE_ROWS * n, 1]; sums [B, TILE_ROWS * n, L].
    """

    peak: Tensor
    total: Tensor
    sums: Tensor

    def attended(self) -> Tensor:
        """[B, rows, L]."""
        return self.sums / self.total


def walk_chunk(before: ChunkWalk | None, queries: Tensor, keys: Tensor, hidden: Tensor | None) -> ChunkWalk:
    """Add the keys [B, N, L] of one chunk for the (scaled) queries [B, rows, L]; `hidden` bool [B, rows or 1, N].

    Every row must have seen a key after its first chunk. Hidden keys must be finite: they weigh exactly 0.
    """
    scores = torch.bmm(queries, keys.transpose(1, 2))
    if hidden is not None:
        scores.masked_fill_(hidden, -torch.inf)
    peak = scores.amax(-1, keepdim=True)
    if before is not None:
        peak = torch.maximum(before.peak, peak)
    weights = scores.sub_(peak).exp_()
    total = weights.sum(-1, keepdim=True)
    sums = torch.bmm(weights, keys)
    if before is not None:
        kept = (before.peak - peak).exp_()
        total += before.total * kept
        sums += before.sums * kept
    return ChunkWalk(peak, total, sums)


def aligned(size: int, multiple: int = ALIGNED_VALUES) -> int:
    """`size` rounded up."""
    return -(-size // multiple) * multiple


def padded(x: Tensor, rows: int) -> Tensor:
    """fp32 [B, rows, L rounded up to 16] from [B, n, L], with zeros behind."""
    behind = rows - x.shape[1], aligned(x.shape[2]) - x.shape[2]
    return torch.nn.functional.pad(x.float(), (0, behind[1], 0, behind[0])) if any(behind) else x.float().contiguous()
