"""Definition of KDA, one row after the other: the recurrent form, which computes decode rows.

For each head, with state M [K, V], decay d = exp(log_decay) in [K] and all vectors of the row:

    M <- diag(d) M;   M <- M + k (beta * (v - k^T M))^T;   o = q^T M
"""

import torch
from torch import Tensor

from twinspark_kernels.kda.inputs import KdaInputs, KdaParams, PreparedRows, prepare_rows
from twinspark_kernels.segments import slot_index, split_segments


def kda_recurrent(inputs: KdaInputs, params: KdaParams, state: Tensor, slots: Tensor, positions: Tensor) -> Tensor:
    """o [T, H, V]; see the public op. All windows take their r-th row together."""
    # Longest first: the windows that still have a row are then a prefix of the batch.
    windows = sorted(split_segments(slots, positions), key=lambda window: -window.length)
    rows = prepare_rows(inputs, params)
    out = torch.zeros_like(rows.v)
    if not windows:
        return out.to(inputs.q.dtype)
    index = slot_index(windows, state.device)
    M = state.index_select(0, index)
    decay = rows.log_decay.exp()
    for r in range(windows[0].length):
        picked = [window.start + r for window in windows if window.length > r]
        if picked == list(range(len(slots))):
            out = _advance(M, rows, decay)
        else:
            at = torch.tensor(picked, device=state.device)
            row = PreparedRows(rows.q[at], rows.k[at], rows.v[at], rows.log_decay, rows.beta[at])
            out[at] = _advance(M[: len(picked)], row, decay[at])
    state.index_copy_(0, index, M)
    return out.to(inputs.q.dtype)


def _advance(M: Tensor, row: PreparedRows, decay: Tensor) -> Tensor:
    """o [N, H, V] of one row of each of N windows; moves M [N, H, K, V] on in place.

    Products and sums are separate operations, and the sum runs over K for each value channel by itself: no matrix
    product, whose order of additions may depend on where an operand lies in memory.
    """
    k = row.k[..., None]
    M *= decay[..., None]
    recalled = (M * k).sum(-2)
    delta = (row.v - recalled).mul_(row.beta[..., None])
    M += k * delta[..., None, :]
    return (M * row.q[..., None]).sum(-2)
