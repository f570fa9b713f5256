"""Pool keys of the sparse-attention indexer: one weighted mean of the keys of each `kpool` consecutive tokens.

Pools are counted from position 0. A pool is written by the rows that complete it; members from earlier forwards come
from a ring of the newest raw keys and gates. CPU tensors run the reference. CONTRACT.md, where it differs from the
common answers:
1. Inputs: packed segments (`segments.py`), whose positions are checked; all but ape in one dtype; pools are paged
   (`paged.py`).
2. Outputs: none is returned. Written are the pools that these rows complete and one ring place a row (of a segment
   longer than the ring, the newest R rows); an incomplete pool is not touched.
3. Arithmetic: fp32; weights rounded to the dtype of the keys, members added in order, rounded once; 1e-6 of float64.
4. Row invariance: a pool's bits depend on its members alone, whichever forwards computed them, wherever its block lies.
6. Side effects: `pools`, `ring_keys` and `ring_gates` change in place, the rings last; rows of slot -1 write the last
   ring row, the trash row. Workspace: about six fp32 copies of the members of the completed pools.
7. Graph capture: the reference reads slots and positions on the host.
8. Limits: windows written anew have at most 16 rows; the ring bounds kpool; one segment a slot and forward.
"""

import torch
from torch import Tensor

from twinspark_kernels.paged import PagedRows, check_paged
from twinspark_kernels.pool_keys import reference
from twinspark_kernels.segments import check_rows, check_shape

__all__ = ["MAX_WINDOW", "update_pools"]

MAX_WINDOW = 16


def update_pools(
    keys: Tensor,
    gates: Tensor,
    ape: Tensor,
    ring_keys: Tensor,
    ring_gates: Tensor,
    pools: PagedRows,
    slots: Tensor,
    positions: Tensor,
) -> None:
    """Write every pool that these rows complete, then the rings.

    keys, gates [T, Di] of packed segments; ape fp32 [kpool, Di]; ring_keys, ring_gates [S, R, Di], addressed by
    position % R; pools blocks [B, _, Di] of every slot's pools; all but ape in one dtype; slots, positions int64
    [T]. R is a multiple of kpool and at least kpool + 16: a window of 16 rows written anew after a rejection then finds
    the members before it, and rewrites the pools that rejected rows had completed. Rows of slot -1 may write the last
    ring row only. Raises TypeError and ValueError for wrong dtypes and shapes.
    """
    check_shape("keys", keys, (None, None))
    rows, width = keys.shape
    check_shape("gates", gates, (rows, width))
    check_shape("ape", ape, (None, width))
    check_shape("ring_keys", ring_keys, (None, None, width))
    check_shape("ring_gates", ring_gates, tuple(ring_keys.shape))
    check_paged("pools", pools, width, pools.block_rows)
    check_shape("pools.table", pools.table, (len(ring_keys), None))
    if ape.dtype != torch.float32:
        raise TypeError(f"ape: must be float32, got {ape.dtype}")
    same = {"gates": gates, "ring_keys": ring_keys, "ring_gates": ring_gates, "pools": pools.values}
    for name, tensor in same.items():
        if tensor.dtype != keys.dtype:
            raise TypeError(f"{name}: must have the dtype of keys, {keys.dtype}, got {tensor.dtype}")
    ring, kpool = ring_keys.shape[1], len(ape)
    if ring % kpool or ring < kpool + MAX_WINDOW:
        raise ValueError(f"ring_keys: pools of {kpool} need a multiple of it, {kpool + MAX_WINDOW} or more, got {ring}")
    check_rows(rows, slots, positions)
    reference.update_pools(keys, gates, ape, ring_keys, ring_gates, pools, slots, positions)
