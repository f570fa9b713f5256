"""Triton kernels of the coefficients of a token: post and the Sinkhorn-normalised comb, forward and backward.

`mix` [N, 24] fp32 is the input of both: the normalised dots, before scale and base. All programs own BLOCK tokens.
"""

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

jit: Callable[[Callable[..., Any]], Any] = triton.jit


@jit
def _post_gate(mix: tl.tensor, base: tl.tensor, scale: tl.tensor, row: tl.tensor, live: tl.tensor) -> tl.tensor:
    """sigmoid of the post logits, [BLOCK, 4]."""
    stream = tl.arange(0, 4)
    raw = tl.load(mix + row[:, None] * 24 + 4 + stream[None, :], mask=live[:, None], other=0.0)
    return tl.sigmoid(raw * tl.load(scale + 1) + tl.load(base + 4 + stream)[None, :])


@jit
def _comb_softmax(mix: tl.tensor, base: tl.tensor, scale: tl.tensor, row: tl.tensor, live: tl.tensor) -> tl.tensor:
    """softmax over the targets of the comb logits, [BLOCK, 4, 4]."""
    entry = 8 + tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :]
    at = row[:, None, None] * 24 + entry[None, :, :]
    raw = tl.load(mix + at, mask=live[:, None, None], other=0.0)
    logits = raw * tl.load(scale + 2) + tl.load(base + entry)[None, :, :]
    power = tl.exp(logits - tl.max(logits, 2)[:, :, None])
    return power / tl.sum(power, 2)[:, :, None]


@jit
def coefficients_forward(  # noqa: PLR0913 -- a kernel takes pointers one by one
    mix: tl.tensor,
    base: tl.tensor,
    scale: tl.tensor,
    post: tl.tensor,
    comb: tl.tensor,
    rows: tl.tensor,
    eps: tl.tensor,
    iterations: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    """post [N, 4] and comb [N, 4, 4], fp32."""
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = row < rows
    stream = tl.arange(0, 4)
    gate = _post_gate(mix, base, scale, row, live)
    tl.store(post + row[:, None] * 4 + stream[None, :], 2.0 * gate, mask=live[:, None])
    value = _comb_softmax(mix, base, scale, row, live) + eps
    value = value * (1.0 / (tl.sum(value, 1) + eps))[:, None, :]
    for _ in range(iterations - 1):
        value = value * (1.0 / (tl.sum(value, 2) + eps))[:, :, None]
        value = value * (1.0 / (tl.sum(value, 1) + eps))[:, None, :]
    at = row[:, None, None] * 16 + stream[None, :, None] * 4 + stream[None, None, :]
    tl.store(comb + at, value, mask=live[:, None, None])


@jit
def coefficients_backward(  # noqa: PLR0913 -- a kernel takes pointers one by one
    d_post: tl.tensor,
    d_comb: tl.tensor,
    mix: tl.tensor,
    base: tl.tensor,
    scale: tl.tensor,
    d_logits: tl.tensor,
    sums: tl.tensor,
    rows: tl.tensor,
    eps: tl.tensor,
    iterations: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    """Columns 4..23 of d_logits [N, 24] (fp32, gradient after scale and base).

    sums [2 * iterations - 1, N, 4] fp32 is scratch: the divisor of every step, in order. A step is y = x / q with
    q = sum(x) + eps, so x = y * q and dx = (dy - sum(dy * y)) / q: going back needs no stored matrix.
    """
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = row < rows
    stream = tl.arange(0, 4)
    gate = _post_gate(mix, base, scale, row, live)
    gradient = tl.load(d_post + row[:, None] * 4 + stream[None, :], mask=live[:, None], other=0.0)
    at = row[:, None] * 24 + 4 + stream[None, :]
    tl.store(d_logits + at, gradient * 2.0 * gate * (1.0 - gate), mask=live[:, None])

    softmax = _comb_softmax(mix, base, scale, row, live)
    own = row[:, None] * 4 + stream[None, :]
    step = sums
    value = softmax + eps
    divisor = tl.sum(value, 1) + eps
    tl.store(step + own, divisor, mask=live[:, None])
    value = value * (1.0 / divisor)[:, None, :]
    for _ in range(iterations - 1):
        divisor = tl.sum(value, 2) + eps
        tl.store(step + rows * 4 + own, divisor, mask=live[:, None])
        value = value * (1.0 / divisor)[:, :, None]
        step += rows * 8
        divisor = tl.sum(value, 1) + eps
        tl.store(step + own, divisor, mask=live[:, None])
        value = value * (1.0 / divisor)[:, None, :]
    # A thread may read back what another one stored: a tensor has not one layout from its store to its load.
    tl.debug_barrier()

    at = row[:, None, None] * 16 + stream[None, :, None] * 4 + stream[None, None, :]
    gradient = tl.load(d_comb + at, mask=live[:, None, None], other=0.0)
    for _ in range(iterations - 1):
        column = tl.load(step + own, mask=live[:, None], other=1.0)[:, None, :]
        gradient = (gradient - tl.sum(gradient * value, 1)[:, None, :]) / column
        value = value * column
        step -= rows * 8
        line = tl.load(step + rows * 4 + own, mask=live[:, None], other=1.0)[:, :, None]
        gradient = (gradient - tl.sum(gradient * value, 2)[:, :, None]) / line
        value = value * line
    last = tl.load(step + own, mask=live[:, None], other=1.0)[:, None, :]
    gradient = (gradient - tl.sum(gradient * value, 1)[:, None, :]) / last
    gradient = softmax * (gradient - tl.sum(gradient * softmax, 2)[:, :, None])
    at = row[:, None, None] * 24 + 8 + stream[None, :, None] * 4 + stream[None, None, :]
    tl.store(d_logits + at, gradient, mask=live[:, None, None])
