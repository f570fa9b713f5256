"""Triton kernels of hc_post: the new streams, and in one pass all gradients. A program owns BLOCK tokens."""

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

jit: Callable[[Callable[..., Any]], Any] = triton.jit


@jit
def _target(  # noqa: PLR0913 -- a kernel takes pointers one by one
    comb: tl.tensor,
    post: tl.tensor,
    x0: tl.tensor,
    x1: tl.tensor,
    x2: tl.tensor,
    x3: tl.tensor,
    y: tl.tensor,
    live: tl.tensor,
    stream: tl.constexpr,
) -> tl.tensor:
    """One new stream [BLOCK, WIDTH], fp32; comb and post point at the coefficients of each token."""
    total = tl.load(post + stream, mask=live, other=0.0)[:, None] * y.to(tl.float32)
    total += tl.load(comb + stream, mask=live, other=0.0)[:, None] * x0.to(tl.float32)
    total += tl.load(comb + 4 + stream, mask=live, other=0.0)[:, None] * x1.to(tl.float32)
    total += tl.load(comb + 8 + stream, mask=live, other=0.0)[:, None] * x2.to(tl.float32)
    total += tl.load(comb + 12 + stream, mask=live, other=0.0)[:, None] * x3.to(tl.float32)
    return total


@jit
def post_forward(
    streams: tl.tensor,
    y: tl.tensor,
    post: tl.tensor,
    comb: tl.tensor,
    out: tl.tensor,
    rows: tl.tensor,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """out [N, 4, D] = post[s] * y + sum over j of comb[j, s] * streams[j]."""
    first = tl.program_id(0).to(tl.int64) * BLOCK
    token = tl.arange(0, BLOCK)
    live = token < rows - first
    inside = live[:, None]
    offset = first * (4 * WIDTH) + token[:, None] * (4 * WIDTH) + tl.arange(0, WIDTH)[None, :]
    x0 = tl.load(streams + offset, mask=inside, other=0.0)
    x1 = tl.load(streams + offset + WIDTH, mask=inside, other=0.0)
    x2 = tl.load(streams + offset + 2 * WIDTH, mask=inside, other=0.0)
    x3 = tl.load(streams + offset + 3 * WIDTH, mask=inside, other=0.0)
    at = first * WIDTH + token[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    branch = tl.load(y + at, mask=inside, other=0.0)
    gate = post + first * 4 + token * 4
    matrix = comb + first * 16 + token * 16
    kind: tl.constexpr = out.dtype.element_ty
    for stream in tl.static_range(4):
        total = _target(matrix, gate, x0, x1, x2, x3, branch, live, stream)
        tl.store(out + offset + stream * WIDTH, total.to(kind), mask=inside)


@jit
def _source(
    x: tl.tensor,
    comb: tl.tensor,
    d_comb: tl.tensor,
    g0: tl.tensor,
    g1: tl.tensor,
    g2: tl.tensor,
    g3: tl.tensor,
    live: tl.tensor,
) -> tl.tensor:
    """Gradient of one source [BLOCK, WIDTH], fp32; stores its row of d_comb. comb, d_comb: its row, of each token."""
    wide = x.to(tl.float32)
    even = tl.join(tl.sum(g0 * wide, 1), tl.sum(g2 * wide, 1))
    odd = tl.join(tl.sum(g1 * wide, 1), tl.sum(g3 * wide, 1))
    pair = tl.arange(0, 2)
    at = d_comb[:, None, None] + 2 * pair[None, :, None] + pair[None, None, :]
    tl.store(at, tl.join(even, odd), mask=live[:, None, None])
    total = tl.load(comb, mask=live, other=0.0)[:, None] * g0
    total += tl.load(comb + 1, mask=live, other=0.0)[:, None] * g1
    total += tl.load(comb + 2, mask=live, other=0.0)[:, None] * g2
    total += tl.load(comb + 3, mask=live, other=0.0)[:, None] * g3
    return total


@jit
def post_backward(  # noqa: PLR0913 -- a kernel takes pointers one by one
    d_out: tl.tensor,
    streams: tl.tensor,
    y: tl.tensor,
    post: tl.tensor,
    comb: tl.tensor,
    d_streams: tl.tensor,
    d_y: tl.tensor,
    d_post: tl.tensor,
    d_comb: tl.tensor,
    rows: tl.tensor,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """d_streams[j] = sum over s of comb[j, s] * d_out[s]; d_y = sum of post[s] * d_out[s]; the dots of the rest.

    `y` and `post` are a fifth source with its row of coefficients.
    """
    first = tl.program_id(0).to(tl.int64) * BLOCK
    token = tl.arange(0, BLOCK)
    live = token < rows - first
    inside = live[:, None]
    offset = first * (4 * WIDTH) + token[:, None] * (4 * WIDTH) + tl.arange(0, WIDTH)[None, :]
    g0 = tl.load(d_out + offset, mask=inside, other=0.0).to(tl.float32)
    g1 = tl.load(d_out + offset + WIDTH, mask=inside, other=0.0).to(tl.float32)
    g2 = tl.load(d_out + offset + 2 * WIDTH, mask=inside, other=0.0).to(tl.float32)
    g3 = tl.load(d_out + offset + 3 * WIDTH, mask=inside, other=0.0).to(tl.float32)
    kind: tl.constexpr = d_streams.dtype.element_ty
    row = first * 16 + token * 16
    for stream in tl.static_range(4):
        x = tl.load(streams + offset + stream * WIDTH, mask=inside, other=0.0)
        total = _source(x, comb + row + 4 * stream, d_comb + row + 4 * stream, g0, g1, g2, g3, live)
        tl.store(d_streams + offset + stream * WIDTH, total.to(kind), mask=inside)
    at = first * WIDTH + token[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    branch = tl.load(y + at, mask=inside, other=0.0)
    row = first * 4 + token * 4
    total = _source(branch, post + row, d_post + row, g0, g1, g2, g3, live)
    tl.store(d_y + at, total.to(d_y.dtype.element_ty), mask=inside)
