"""Triton kernels of the forward: what a chunk knows without the state, then the pass over the chunks.

Formulas and names: `chunked.py`. What the passes read of a chunk is one record of fp32 in `work` [B * H, N, record]:
W [C, K] and U [C, V] (E = U - W S), Q exp G [C, K], K exp(G_last - G) [C, K], P [C, C], the inverse of I + diag(beta) A
[C, C] and exp G_last [K]. Rows behind T are zeros in it.
"""

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

from twinspark_demo.training.kda_recurrence.chunked import CHUNK

jit: Callable[[Callable[..., Any]], Any] = triton.jit
C = tl.constexpr(CHUNK)


def record_size(K: int, V: int) -> int:
    """fp32 values of `work` that a chunk of one head takes."""
    return (3 * CHUNK + 1) * K + CHUNK * V + 2 * CHUNK * CHUNK


@jit
def tile(rows: tl.constexpr, cols: tl.constexpr, stride: tl.constexpr) -> tl.tensor:
    """Offsets [rows, cols] of a tile whose rows lie `stride` apart."""
    return tl.arange(0, rows)[:, None] * stride + tl.arange(0, cols)[None, :]


@jit
def record(work: tl.tensor, index: tl.tensor, K: tl.constexpr, V: tl.constexpr) -> tuple[tl.tensor, ...]:
    """Pointers to the parts of a record: W, Q exp G, K exp(G_last - G), U, P, inverse, exp G_last."""
    w = work + index * ((3 * C + 1) * K + C * V + 2 * C * C)
    queries = w + C * K
    keys = queries + C * K
    u = keys + C * K
    read = u + C * V
    inverse = read + C * C
    return w, queries, keys, u, read, inverse, inverse + C * C


@jit
def load_decays(log_decay: tl.tensor, at: tl.tensor, mask: tl.tensor) -> tuple[tl.tensor, tl.tensor, tl.tensor]:
    """G [C, K], and its rows in the middle and at the end of the chunk [K]."""
    g = tl.load(log_decay + at, mask=mask, other=0.0).to(tl.float32)
    row = tl.arange(0, C)[:, None]
    total = tl.cumsum(g, 0)
    middle = tl.sum(tl.where(row < C // 2, g, 0.0), 0)
    return total, middle, tl.sum(g, 0)


@jit
def load_documents(starts: tl.tensor, present: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
    """Number of document starts up to each row of the chunk, int32 [C], and in the whole chunk."""
    started = tl.load(starts + tl.arange(0, C), mask=present, other=0).to(tl.int32)
    return tl.cumsum(started, 0), tl.sum(started, 0)


@jit
def invert(lower: tl.tensor) -> tl.tensor:
    """Inverse [C, C] of I + lower, which is strictly lower triangular, by elimination of one column after the other."""
    row = tl.arange(0, C)[:, None]
    col = tl.arange(0, C)[None, :]
    inverse = tl.where(row == col, 1.0, 0.0)
    for j in range(C - 1):
        factor = tl.sum(tl.where(col == j, lower, 0.0), 1)
        solved = tl.sum(tl.where(row == j, inverse, 0.0), 0)
        inverse -= factor[:, None] * solved[None, :]
    return inverse


@jit
def prepare_kernel(  # noqa: PLR0913 -- a kernel takes pointers one by one
    q: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    log_decay: tl.tensor,
    beta: tl.tensor,
    starts: tl.tensor,
    work: tl.tensor,
    T: tl.tensor,
    H: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    PRECISION: tl.constexpr,
) -> None:
    """Program (n, head): writes the record of chunk n of head = b * H + h."""
    n = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    first = (head // H) * T + n * C
    present = n * C + tl.arange(0, C) < T
    w_at, queries_at, keys_at, u_at, read_at, inverse_at, decay_at = record(work, head * tl.cdiv(T, C) + n, K, V)
    at = (first * H + head % H) * K + tile(C, K, H * K)
    mask = present[:, None]
    total, middle, last = load_decays(log_decay, at, mask)
    document, documents = load_documents(starts + first, present)
    row = tl.arange(0, C)[:, None]
    col = tl.arange(0, C)[None, :]
    same = document[:, None] == document[None, :]
    to_row = tl.exp(total - middle[None, :])
    from_start = tl.where(document[:, None] == 0, tl.exp(total), 0.0)

    keys = tl.load(k + at, mask=mask, other=0.0).to(tl.float32)
    queries = tl.load(q + at, mask=mask, other=0.0).to(tl.float32)
    scale = tl.load(beta + (first + tl.arange(0, C)) * H + head % H, mask=present, other=0.0).to(tl.float32)
    sent = tl.trans(keys * tl.exp(middle[None, :] - total))
    recall = tl.dot(keys * to_row, sent, input_precision=PRECISION)
    read = tl.dot(queries * to_row, sent, input_precision=PRECISION)
    to_end = tl.where((document == documents)[:, None], tl.exp(last[None, :] - total), 0.0)
    read = tl.where((row > col) & same, read, 0.0)
    tl.store(read_at + tile(C, C, C), tl.where(row == col, tl.sum(queries * keys, 1)[:, None], read))
    tl.store(queries_at + tile(C, K, K), queries * from_start)
    tl.store(keys_at + tile(C, K, K), keys * to_end)
    tl.store(decay_at + tl.arange(0, K), tl.where(documents == 0, tl.exp(last), 0.0))

    inverse = invert(tl.where((row > col) & same, recall * scale[:, None], 0.0))
    tl.store(inverse_at + tile(C, C, C), inverse)
    solve = inverse * scale[None, :]
    tl.store(w_at + tile(C, K, K), tl.dot(solve, keys * from_start, input_precision=PRECISION))
    values = tl.load(v + (first * H + head % H) * V + tile(C, V, H * V), mask=mask, other=0.0).to(tl.float32)
    tl.store(u_at + tile(C, V, V), tl.dot(solve, values, input_precision=PRECISION))


@jit
def scan_kernel(  # noqa: PLR0913 -- a kernel takes pointers one by one
    work: tl.tensor,
    states: tl.tensor,
    written: tl.tensor,
    o: tl.tensor,
    T: tl.tensor,
    H: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    BV: tl.constexpr,
    PRECISION: tl.constexpr,
    STAGES: tl.constexpr,
) -> None:
    """Program (block of BV columns, head): o, and for the backward S before each chunk and E.

    states [B * H, N, K, V], written fp32 [B * H, N, C, V]. The columns of S do not know of each other.
    """
    column = tl.program_id(0) * BV
    head = tl.program_id(1).to(tl.int64)
    num_chunks = tl.cdiv(T, C)
    o += (head // H * T * H + head % H) * V + column
    state = tl.zeros((K, BV), tl.float32)
    for n in tl.range(0, num_chunks, num_stages=STAGES):
        index = head * num_chunks + n
        w_at, queries_at, keys_at, u_at, read_at, _, decay_at = record(work, index, K, V)
        w = tl.load(w_at + tile(C, K, K))
        queries = tl.load(queries_at + tile(C, K, K))
        keys = tl.load(keys_at + tile(C, K, K))
        u = tl.load(u_at + column + tile(C, BV, V))
        read = tl.load(read_at + tile(C, C, C))
        decay = tl.load(decay_at + tl.arange(0, K))
        tl.store(states + index * K * V + column + tile(K, BV, V), state.to(states.dtype.element_ty))
        row = u - tl.dot(w, state, input_precision=PRECISION)
        out = tl.dot(queries, state, input_precision=PRECISION)
        out = tl.dot(read, row, acc=out, input_precision=PRECISION)
        state = tl.dot(tl.trans(keys), row, acc=state * decay[:, None], input_precision=PRECISION)
        tl.store(written + index * C * V + column + tile(C, BV, V), row)
        present = n * C + tl.arange(0, C) < T
        out_at = o + n * (C * H * V) + tile(C, BV, H * V)
        tl.store(out_at, out.to(o.dtype.element_ty), mask=present[:, None])
