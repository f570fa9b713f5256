"""Short causal convolution of a KDA layer's q, k and v channels: 4 taps a channel, then SiLU.

CPU tensors run the reference. CONTRACT.md, where it differs from the common answers:
1. Inputs: packed segments (`segments.py`), whose positions are checked; x and state have one dtype.
2. Outputs: rows of slot -1 are zeros.
3. Arithmetic: fp32, taps multiplied and added one after the other, oldest first, never fused; 1e-6 of float64.
4. Row invariance: only elementwise arithmetic, so a row's bits depend on its four inputs and the weight alone, in any
   chunking and in any window.
6. Side effects: `state` of each slot that has rows becomes its 3 newest rows, in place; no other slot is touched.
   Workspace: about four fp32 copies of x.
7. Graph capture: the reference reads slots and positions on the host.
8. Limits: one segment a slot and forward.
"""

from torch import Tensor

from twinspark_kernels.segments import check_rows, check_shape
from twinspark_kernels.short_conv import reference
from twinspark_kernels.short_conv.reference import TAPS

__all__ = ["TAPS", "short_conv"]


def short_conv(x: Tensor, weight: Tensor, state: Tensor, slots: Tensor, positions: Tensor) -> Tensor:
    """SiLU of the causal convolution of each channel: [T, C] in x's dtype; moves `state` on to the newest rows.

    x [T, C] projection rows of packed segments; weight [C, 4], tap 3 on the row itself; state [S, 3, C] in x's dtype,
    oldest row first, zeros before a prompt's first row; slots, positions int64 [T]. Rows of slot -1 give zeros and
    touch no state. Raises TypeError and ValueError for wrong dtypes and shapes.
    """
    check_shape("x", x, (None, None))
    rows, channels = x.shape
    check_shape("weight", weight, (channels, TAPS))
    check_shape("state", state, (None, TAPS - 1, channels))
    if state.dtype != x.dtype:
        raise TypeError(f"state: must have the dtype of x, {x.dtype}, got {state.dtype}")
    check_rows(rows, slots, positions)
    return reference.short_conv(x, weight, state, slots, positions)
