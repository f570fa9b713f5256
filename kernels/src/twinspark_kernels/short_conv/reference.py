"""Definition of the short convolution: y[t] = silu(sum over j of w[j] * x[t - 3 + j]), fp32, taps added in order.

Products and sums are separate elementwise operations: a fused multiply-add would round otherwise in the vector and in
the scalar part of a loop, and a row's bits would depend on where it lies.
"""

import torch
from torch import Tensor

from twinspark_kernels.segments import Segment, slot_index, split_segments, uniform_runs
from twinspark_kernels.sigmoid import silu

TAPS = 4


def short_conv(x: Tensor, weight: Tensor, state: Tensor, slots: Tensor, positions: Tensor) -> Tensor:
    """[T, C] in x's dtype; see the public op."""
    segments = split_segments(slots, positions)
    taps = weight.float().t().contiguous()  # [4, C]
    runs = list(uniform_runs(segments))
    if len(runs) == 1 and len(segments) * segments[0].length == len(x):
        return _convolve_run(x, taps, state, runs[0])
    out = torch.zeros_like(x)
    for run in runs:
        first, last = run[0].start, run[-1].stop
        out[first:last] = _convolve_run(x[first:last], taps, state, run)
    return out


def _convolve_run(x: Tensor, taps: Tensor, state: Tensor, run: list[Segment]) -> Tensor:
    """[N * W, C] for N segments of W rows."""
    length = run[0].length
    index = slot_index(run, x.device)
    rows = torch.cat((state.index_select(0, index), x.reshape(len(run), length, x.shape[-1])), 1)  # [N, 3 + W, C]
    state.index_copy_(0, index, rows[:, length:])
    wide = rows.float()
    y = wide[:, :length] * taps[0]
    for tap in range(1, TAPS):
        y += wide[:, tap : tap + length] * taps[tap]
    return silu(y).to(x.dtype).view(x.shape)
