"""Definition of the indexer: score_p = sum over heads h of w_h * relu((q_h . pool_p) * Di^-0.5), in fp32.

A row keeps its `num_selected` best candidates as a stable descending sort would order them: of equal scores the lower
pool wins. Pools are scored in chunks of 512 counted from pool 0, (row, head) pairs in fixed tiles.
"""

import torch
from torch import Tensor

from twinspark_kernels.linear import linear
from twinspark_kernels.row_class import RowClass
from twinspark_kernels.segments import PADDING_SLOT, split_segments

POOL_CHUNK = 512
# Most fp32 values of one temporary: 16 MB. Blocks of rows only bound memory, they change no bit.
MAX_VALUES = 4 * 2**20


def select_pools(
    queries: Tensor,
    head_weights: Tensor,
    pools: Tensor,
    slots: Tensor,
    positions: Tensor,
    *,
    num_selected: int,
    pool: int,
) -> Tensor:
    """int64 [T, num_selected]; see the public op."""
    counts = ((positions + 1) // pool).where(slots != PADDING_SLOT, 0)[:, None]
    ids = torch.arange(num_selected, device=slots.device)
    selected = ids.where(ids < counts, -1)
    for segment in split_segments(slots, positions):
        # The first position with more candidates than places.
        first_scored = (num_selected + 1) * pool - 1
        start = max(segment.start, segment.start + first_scored - segment.position)
        width = segment.end // pool
        block = max(1, MAX_VALUES // max(width, POOL_CHUNK * queries.shape[1]))
        for first in range(start, segment.stop, block):
            rows = slice(first, min(first + block, segment.stop))
            scores = _score_rows(queries[rows], head_weights[rows], pools[segment.slot], counts[rows], width)
            selected[rows] = _best_ascending(scores, num_selected)
    return selected


def pool_scores(
    queries: Tensor, head_weights: Tensor, pools: Tensor, slots: Tensor, positions: Tensor, *, pool: int
) -> Tensor:
    """fp32 [T, P]; see the public op."""
    counts = ((positions + 1) // pool)[:, None]
    scores = queries.new_full((len(slots), pools.shape[1]), -torch.inf, dtype=torch.float32)
    for segment in split_segments(slots, positions):
        rows, width = slice(segment.start, segment.stop), segment.end // pool
        scores[rows, :width] = _score_rows(queries[rows], head_weights[rows], pools[segment.slot], counts[rows], width)
    return scores


def _score_rows(queries: Tensor, head_weights: Tensor, pools: Tensor, counts: Tensor, width: int) -> Tensor:
    """fp32 [rows, width] for rows of one slot with pools [P, Di]; -inf from each row's count [rows, 1] on."""
    rows, heads, channels = queries.shape
    pairs = queries.reshape(rows * heads, channels)
    scores = pairs.new_empty((rows, width), dtype=torch.float32)
    for first in range(0, width, POOL_CHUNK):
        # The whole chunk, also where only its first pools are candidates: the product's shape is part of the bits.
        products = linear(pairs, pools[first : first + POOL_CHUNK], row_class=RowClass.DECODE, out_dtype=torch.float32)
        activations = products.mul_(channels**-0.5).clamp_(min=0).view(rows, heads, -1)
        chunk = activations.mul_(head_weights[..., None]).sum(1)
        scores[:, first : first + POOL_CHUNK] = chunk[:, : width - first]
    ids = torch.arange(width, device=scores.device)
    # A NaN is no candidate: a broken request then selects something, and harms no other.
    return scores.masked_fill_((ids >= counts).logical_or_(scores.isnan()), -torch.inf)


def _best_ascending(scores: Tensor, num_selected: int) -> Tensor:
    """int64 [rows, num_selected] of scores [rows, width], width > num_selected.

    `topk` gives the exact value at the cut, but orders ties as it likes; so ties at the cut are taken here, lowest
    first.
    """
    cut = scores.topk(num_selected, dim=-1, sorted=False).values.amin(-1, keepdim=True)
    above = scores > cut
    tied = scores == cut
    places = num_selected - above.sum(-1, keepdim=True)
    chosen = above.logical_or_(tied.logical_and(tied.cumsum(-1) <= places))
    return chosen.nonzero()[:, 1].view(len(scores), num_selected)
