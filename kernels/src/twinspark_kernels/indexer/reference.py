"""Definition of the indexer: score_p = sum over heads h of w_h * relu((q_h . pool_p) * Di^-0.5), in fp32.

A row keeps its `num_selected` best candidates as a stable descending sort would order them: of equal scores the lower
pool wins. Pools are scored in chunks of 512 counted from pool 0, (row, head) pairs in fixed tiles.
"""

import torch
from torch import Tensor

from twinspark_kernels.linear import linear
from twinspark_kernels.paged import PagedRows
from twinspark_kernels.row_class import RowClass
from twinspark_kernels.scratch import GrowingScratch, round_up_to_step
from twinspark_kernels.segments import PADDING_SLOT, split_segments

POOL_CHUNK = 512
# Most fp32 values of one temporary: 16 MB. Blocks of rows only bound memory, they change no bit.
MAX_VALUES = 4 * 2**20


def select_pools(
    queries: Tensor,
    head_weights: Tensor,
    pools: PagedRows,
    slots: Tensor,
    positions: Tensor,
    *,
    num_selected: int,
    pool: int,
    scratch: GrowingScratch,
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
        block = _block_rows(width, queries.shape[1])
        for first in range(start, segment.stop, block):
            rows = slice(first, min(first + block, segment.stop))
            scores = scratch.take(rows.stop - rows.start, width)
            _score_rows(queries[rows], head_weights[rows], pools, segment.slot, counts[rows], scores)
            selected[rows] = _best_ascending(scores, num_selected)
    return selected


def scratch_bytes(num_tokens: int, *, pool: int, heads: int, max_rows: int) -> int:
    """Bytes to which the scratch grows at most for a request of this many tokens, max_rows of them in a forward."""
    width = num_tokens // pool
    return round_up_to_step(4 * width * min(max_rows, _block_rows(width, heads)))


def _block_rows(width: int, heads: int) -> int:
    """Rows that are scored together against `width` pools."""
    return max(1, MAX_VALUES // max(width, POOL_CHUNK * heads))


def pool_scores(
    queries: Tensor, head_weights: Tensor, pools: PagedRows, slots: Tensor, positions: Tensor, *, pool: int
) -> Tensor:
    """fp32 [T, M * R]; see the public op."""
    counts = ((positions + 1) // pool)[:, None]
    scores = queries.new_full((len(slots), pools.table.shape[1] * pools.block_rows), -torch.inf, dtype=torch.float32)
    for segment in split_segments(slots, positions):
        rows, width = slice(segment.start, segment.stop), segment.end // pool
        _score_rows(queries[rows], head_weights[rows], pools, segment.slot, counts[rows], scores[rows, :width])
    return scores


def _score_rows(
    queries: Tensor, head_weights: Tensor, pools: PagedRows, slot: int, counts: Tensor, scores: Tensor
) -> None:
    """Fill scores [rows, width] of rows of one slot; -inf from each row's count [rows, 1] on."""
    rows, heads, channels = queries.shape
    width = scores.shape[1]
    pairs = queries.reshape(rows * heads, channels)
    for first in range(0, width, POOL_CHUNK):
        # The whole chunk, also where only its first pools are candidates: the product's shape is part of the bits.
        keys = pools.read_chunk(slot, first, POOL_CHUNK)
        products = linear(pairs, keys, row_class=RowClass.DECODE, out_dtype=torch.float32)
        activations = products.mul_(channels**-0.5).clamp_(min=0).view(rows, heads, -1)
        chunk = activations.mul_(head_weights[..., None]).sum(1)
        scores[:, first : first + POOL_CHUNK] = chunk[:, : width - first]
    ids = torch.arange(width, device=scores.device)
    # A NaN is no candidate: a broken request then selects something, and harms no other.
    scores.masked_fill_((ids >= counts).logical_or_(scores.isnan()), -torch.inf)


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
