"""The indexer of the sparse attention: scores complete pools for each row and selects the best.

CPU tensors run the reference. CONTRACT.md, where it differs from the common answers:
1. Inputs: packed segments (`segments.py`), whose positions are checked; pools are paged (`paged.py`). Pools past a
   slot's last complete one and blocks of others may hold anything, NaN too; a NaN score is no candidate.
2. Outputs: rows of slot -1 select nothing, -1 in every place.
3. Arithmetic: fp32 products and sum over heads, 1e-5 of float64; the selection is exact for these scores.
4. Row invariance: products in fixed row tiles and fixed chunks of 512 pools counted from pool 0, so scores depend on
   the row and its slot's pools alone, not on their blocks or the table's width; ties go to the lower pool.
6. Side effects: none. Workspace: the scores of a block of rows in `scratch`, at most 16 MB or one row, and a few
   temporaries of that size.
7. Graph capture: the reference reads slots, positions and the places of the selected pools on the host.
8. Limits: a position's complete pools lie inside the slot's blocks; one segment a slot and forward.
"""

import torch
from torch import Tensor

from twinspark_kernels.indexer import reference
from twinspark_kernels.indexer.reference import POOL_CHUNK, scratch_bytes
from twinspark_kernels.paged import PagedRows, check_paged
from twinspark_kernels.scratch import GrowingScratch
from twinspark_kernels.segments import check_rows, check_shape

__all__ = ["pool_scores", "scratch_bytes", "select_pools"]


def select_pools(
    queries: Tensor,
    head_weights: Tensor,
    pools: PagedRows,
    slots: Tensor,
    positions: Tensor,
    *,
    num_selected: int,
    pool: int,
    scratch: GrowingScratch | None = None,
) -> Tensor:
    """Pools that each row attends: int64 [T, num_selected], ascending, filled up with -1.

    queries [T, Hi, Di]; head_weights fp32 [T, Hi]; pools blocks [B, R, Di] of every slot's pool keys, of `pool` tokens
    each; slots, positions int64 [T]. Candidates of a row are the pools whose last token is at or before it. Where there
    are no more than `num_selected`, all are taken and nothing is scored; that depends on the position alone. Rows of
    slot -1 select nothing. `scratch` holds the scores of a block of rows; without one they are a temporary. Raises
    TypeError and ValueError for wrong dtypes and shapes.
    """
    _check(queries, head_weights, pools, slots, positions, pool)
    if num_selected < 1:
        raise ValueError(f"num_selected: must be 1 or more, got {num_selected}")
    return reference.select_pools(
        queries,
        head_weights,
        pools,
        slots,
        positions,
        num_selected=num_selected,
        pool=pool,
        scratch=scratch or GrowingScratch(),
    )


def pool_scores(
    queries: Tensor, head_weights: Tensor, pools: PagedRows, slots: Tensor, positions: Tensor, *, pool: int
) -> Tensor:
    """Scores of all M * R pools of the table for each row: fp32, -inf for pools that are no candidates. For tests."""
    _check(queries, head_weights, pools, slots, positions, pool)
    return reference.pool_scores(queries, head_weights, pools, slots, positions, pool=pool)


def _check(
    queries: Tensor, head_weights: Tensor, pools: PagedRows, slots: Tensor, positions: Tensor, pool: int
) -> None:
    check_shape("queries", queries, (None, None, None))
    rows, heads, width = queries.shape
    check_shape("head_weights", head_weights, (rows, heads))
    check_paged("pools", pools, width, POOL_CHUNK)
    if head_weights.dtype != torch.float32:
        raise TypeError(f"head_weights: must be float32, got {head_weights.dtype}")
    if pool < 1:
        raise ValueError(f"pool: must be 1 or more, got {pool}")
    check_rows(rows, slots, positions)
