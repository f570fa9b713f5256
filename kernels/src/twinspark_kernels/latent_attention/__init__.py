"""Latent attention in absorbed form: one latent row is key and value of all heads; dense or over selected pools.

CPU tensors run the reference. CONTRACT.md, where it differs from the common answers:
1. Inputs: packed segments (`segments.py`), whose positions are checked; latents are paged (`paged.py`), plain or FP8,
   and finite wherever a row attends; what lies behind a slot's newest row, and in blocks of others, may be anything.
2. Outputs: rows of slot -1 are zeros.
3. Arithmetic: fp32, a running maximum over chunks of 512 keys; 1e-5 of float64.
4. Row invariance: dense or sparse is decided by a row's position; chunks are counted from position 0 or from the start
   of the row's list, with products in fixed tiles, and merged in order. A row never sees how many keys other rows need,
   nor which blocks its keys lie in.
6. Side effects: none. Workspace: dense, [8,192, 512 + 4 L] fp32 for that many (row, head) pairs and a chunk of keys;
   sparse, two copies of the listed keys of 8 rows.
7. Graph capture: the reference reads slots and positions on the host: they decide the walks.
8. Limits: index_topk a multiple of the pool; block * R + row is an int64; one segment a slot and forward.
"""

import torch
from torch import Tensor

from twinspark_kernels.latent_attention import reference
from twinspark_kernels.latent_attention.reference import KEY_CHUNK, dense_limit
from twinspark_kernels.paged import PagedRows, check_paged
from twinspark_kernels.segments import check_rows, check_shape

__all__ = ["KEY_CHUNK", "dense_limit", "latent_attention"]


def latent_attention(
    q: Tensor,
    latents: PagedRows,
    slots: Tensor,
    positions: Tensor,
    selected: Tensor | None,
    *,
    scale: float,
    pool: int,
    index_topk: int,
) -> Tensor:
    """Softmax(scale * q . latents) over the keys of each row, times the latents: [T, H, L] in q's dtype.

    q [T, H, L] absorbed queries; latents blocks [B, R, L] of every slot's rows by position, those of this forward
    already written (and finite); slots, positions int64 [T]. A row before position `dense_limit(pool, index_topk)`
    attends all positions up to its own; a row from there on attends the `index_topk` tokens of its pools, `selected`
    int64 [T, index_topk / pool] ascending, and the (position + 1) % pool newest tokens. `selected` is None where no row
    reaches that limit. Rows of slot -1 give zeros. Raises TypeError and ValueError for wrong dtypes and shapes, and
    for a sparse row without `selected`.
    """
    check_shape("q", q, (None, None, None))
    rows, _, width = q.shape
    check_paged("latents", latents, width, KEY_CHUNK)
    if index_topk % pool:
        raise ValueError(f"index_topk: must be a multiple of the pool, {pool}, got {index_topk}")
    if selected is not None:
        check_shape("selected", selected, (rows, index_topk // pool))
        if selected.dtype != torch.int64:
            raise TypeError(f"selected: must be int64, got {selected.dtype}")
    check_rows(rows, slots, positions)
    return reference.latent_attention(
        q, latents, slots, positions, selected, scale=scale, pool=pool, index_topk=index_topk
    )
