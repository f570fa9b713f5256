"""Triton kernels of the passes over the streams in hc_pre: dots, rms and collapse; and the way back.

A program owns BLOCK tokens. It reads their streams twice, the second time from a cache: registers cannot hold them
beside the operands of the dots. The 24 rows of `fn` are padded to 32; D (WIDTH) is a power of two.
"""

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

jit: Callable[[Callable[..., Any]], Any] = triton.jit


@jit
def _pre_gates(mix: tl.tensor, base: tl.tensor, scale: tl.tensor) -> tl.tensor:
    """sigmoid of the pre logits in columns 0..3 of [BLOCK, 32], from mix of the same shape."""
    column = tl.arange(0, 32)
    return tl.sigmoid(mix * tl.load(scale) + tl.load(base + column, mask=column < 4, other=0.0)[None, :])


@jit
def _column_of(tile: tl.tensor, wanted: tl.tensor) -> tl.tensor:
    """One column of [BLOCK, 32], as [BLOCK]."""
    return tl.sum(tl.where(tl.arange(0, 32)[None, :] == wanted, tile, 0.0), 1)


@jit
def _weighed(at: tl.tensor, weight: tl.tensor, inside: tl.tensor) -> tl.tensor:
    return weight[:, None] * tl.load(at, mask=inside, other=0.0).to(tl.float32)


@jit
def streams_forward(  # noqa: PLR0913 -- a kernel takes pointers one by one
    streams: tl.tensor,
    fn: tl.tensor,
    base: tl.tensor,
    scale: tl.tensor,
    u: tl.tensor,
    mix: tl.tensor,
    rms: tl.tensor,
    rows: tl.tensor,
    rms_eps: tl.tensor,
    hc_eps: tl.tensor,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
    CHUNK: tl.constexpr,
) -> None:
    """u [N, D], mix [N, 24] fp32 (dots times rms) and rms [N] fp32 (1 / root mean square) from streams [N, 4, D]."""
    first = tl.program_id(0).to(tl.int64) * BLOCK
    token = tl.arange(0, BLOCK)
    live = token < rows - first
    inside = live[:, None]
    column = tl.arange(0, 32)
    channel = tl.arange(0, CHUNK)
    own = streams + first * (4 * WIDTH) + token[:, None] * (4 * WIDTH) + channel[None, :]
    columns = fn + column[None, :] * (4 * WIDTH) + channel[:, None]
    dots = tl.zeros([BLOCK, 32], tl.float32)
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, 4 * WIDTH, CHUNK):
        x = tl.load(own + start, mask=inside, other=0.0)
        rows_of_fn = tl.load(columns + start, mask=column[None, :] < 24, other=0.0)
        dots = tl.dot(x, rows_of_fn, dots, input_precision="ieee")
        wide = x.to(tl.float32)
        squares += tl.sum(wide * wide, 1)
    inverse = tl.rsqrt(squares / (4 * WIDTH) + rms_eps)
    tl.store(rms + first + token, inverse, mask=live)
    mixed = dots * inverse[:, None]
    entry = mix + first * 24 + token[:, None] * 24 + column[None, :]
    tl.store(entry, mixed, mask=inside & (column[None, :] < 24))

    weights = _pre_gates(mixed, base, scale) + hc_eps
    weight0, weight1 = _column_of(weights, 0), _column_of(weights, 1)
    weight2, weight3 = _column_of(weights, 2), _column_of(weights, 3)
    out = u + first * WIDTH + token[:, None] * WIDTH + channel[None, :]
    for start in range(0, WIDTH, CHUNK):
        total = _weighed(own + start, weight0, inside)
        total += _weighed(own + start + WIDTH, weight1, inside)
        total += _weighed(own + start + 2 * WIDTH, weight2, inside)
        total += _weighed(own + start + 3 * WIDTH, weight3, inside)
        tl.store(out + start, total.to(u.dtype.element_ty), mask=inside)


@jit
def _scale_of_column(scale: tl.tensor) -> tl.tensor:
    """[1, 32]: the scale of pre, of post, of comb."""
    column = tl.arange(0, 32)[None, :]
    return tl.where(column < 4, tl.load(scale), tl.where(column < 8, tl.load(scale + 1), tl.load(scale + 2)))


@jit
def _partial_sums(d_logits: tl.tensor, mix: tl.tensor) -> tl.tensor:
    """[32]: d_base of these tokens in columns 0..23, d_scale in columns 24..26."""
    column = tl.arange(0, 32)
    products = tl.sum(d_logits * mix, 0)
    pre = tl.sum(tl.where(column < 4, products, 0.0), 0)
    post = tl.sum(tl.where((column >= 4) & (column < 8), products, 0.0), 0)
    comb = tl.sum(tl.where(column >= 8, products, 0.0), 0)
    of_scale = tl.where(column == 24, pre, tl.where(column == 25, post, comb))
    return tl.where(column < 24, tl.sum(d_logits, 0), of_scale)


@jit
def streams_backward(  # noqa: PLR0913 -- a kernel takes pointers one by one
    d_u: tl.tensor,
    d_logits: tl.tensor,
    streams: tl.tensor,
    fn: tl.tensor,
    base: tl.tensor,
    scale: tl.tensor,
    mix: tl.tensor,
    rms: tl.tensor,
    d_streams: tl.tensor,
    d_dots: tl.tensor,
    partial: tl.tensor,
    rows: tl.tensor,
    hc_eps: tl.tensor,
    WIDTH: tl.constexpr,
    BLOCK: tl.constexpr,
    CHUNK: tl.constexpr,
) -> None:
    """d_streams [N, 4, D]; d_dots [N, 24] in the dtype of the streams; partial [programs, 32] fp32.

    d_logits [N, 24] holds columns 4..23; those of pre are computed here, where d_u and the streams are.
    """
    first = tl.program_id(0).to(tl.int64) * BLOCK
    token = tl.arange(0, BLOCK)
    live = token < rows - first
    inside = live[:, None]
    column = tl.arange(0, 32)
    entry = token[:, None] * 24 + column[None, :]
    used = inside & (column[None, :] < 24)
    mixed = tl.load(mix + first * 24 + entry, mask=used, other=0.0)
    inverse = tl.load(rms + first + token, mask=live, other=0.0)
    gradient = tl.load(d_logits + first * 24 + entry, mask=used & (column[None, :] >= 4), other=0.0)
    channel = tl.arange(0, CHUNK)[None, :]
    own = token[:, None] * (4 * WIDTH) + channel
    own_u = d_u + first * WIDTH + token[:, None] * WIDTH + channel
    own_x = streams + first * (4 * WIDTH) + own
    for start in range(0, WIDTH, CHUNK):
        du = tl.load(own_u + start, mask=inside, other=0.0).to(tl.float32)
        for stream in tl.static_range(4):
            x = tl.load(own_x + start + stream * WIDTH, mask=inside, other=0.0)
            dot = tl.sum(x.to(tl.float32) * du, 1)
            gradient += tl.where(column[None, :] == stream, dot[:, None], 0.0)
    gates = _pre_gates(mixed, base, scale)
    gradient = tl.where(column[None, :] < 4, gradient * gates * (1.0 - gates), gradient)
    tl.store(partial + tl.program_id(0) * 32 + column, _partial_sums(gradient, mixed))

    d_mix = gradient * _scale_of_column(scale)
    shrink = tl.sum(d_mix * mixed, 1) * inverse * inverse / (4 * WIDTH)
    kind: tl.constexpr = d_streams.dtype.element_ty
    dots = (d_mix * inverse[:, None]).to(kind)
    tl.store(d_dots + first * 24 + entry, dots, mask=used)
    rows_of_fn = fn + column[:, None] * (4 * WIDTH) + channel
    out = d_streams + first * (4 * WIDTH) + own
    for stream in range(4):
        weight = _column_of(gates, stream) + hc_eps
        for start in range(0, WIDTH, CHUNK):
            at = stream * WIDTH + start
            part = tl.load(rows_of_fn + at, mask=column[:, None] < 24, other=0.0)
            back = tl.dot(dots, part, input_precision="ieee")
            back += weight[:, None] * tl.load(own_u + start, mask=inside, other=0.0).to(tl.float32)
            back -= shrink[:, None] * tl.load(own_x + at, mask=inside, other=0.0).to(tl.float32)
            tl.store(out + at, back.to(kind), mask=inside)
