"""Triton kernels of the backward: the pass over the chunks from the end, then the gradients inside each chunk.

With the forward E = U - W S, O = Q' S + P E, S_next = diag(d) S + K'^T E of a chunk (`kernel.py`), the pass is

    dE = P^T dO + K' dS_next;   dS = diag(d) dS_next + Q'^T dO - W^T dE

and all other gradients follow from S, dS_next, E and dE of the chunk alone.
"""

import triton.language as tl

from twinspark_demo.training.kda_recurrence.kernel import C, jit, load_decays, load_documents, record, tile


@jit
def scan_back_kernel(  # noqa: PLR0913 -- a kernel takes pointers one by one
    work: tl.tensor,
    d_o: tl.tensor,
    d_states: tl.tensor,
    d_written: tl.tensor,
    T: tl.tensor,
    H: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    BV: tl.constexpr,
    PRECISION: tl.constexpr,
    STAGES: tl.constexpr,
) -> None:
    """Program (block of BV columns, head): writes dS_next [B * H, N, K, V] and dE fp32 [B * H, N, C, V]."""
    column = tl.program_id(0) * BV
    head = tl.program_id(1).to(tl.int64)
    num_chunks = tl.cdiv(T, C)
    d_o += (head // H * T * H + head % H) * V + column
    d_state = tl.zeros((K, BV), tl.float32)
    for i in tl.range(0, num_chunks, num_stages=STAGES):
        n = num_chunks - 1 - i
        index = head * num_chunks + n
        w_at, queries_at, keys_at, _, read_at, _, decay_at = record(work, index, K, V)
        w = tl.load(w_at + tile(C, K, K))
        queries = tl.load(queries_at + tile(C, K, K))
        keys = tl.load(keys_at + tile(C, K, K))
        read = tl.load(read_at + tile(C, C, C))
        decay = tl.load(decay_at + tl.arange(0, K))
        present = n * C + tl.arange(0, C) < T
        d_out_at = d_o + n * (C * H * V) + tile(C, BV, H * V)
        d_out = tl.load(d_out_at, mask=present[:, None], other=0.0).to(tl.float32)
        tl.store(d_states + index * K * V + column + tile(K, BV, V), d_state.to(d_states.dtype.element_ty))
        d_row = tl.dot(tl.trans(read), d_out, input_precision=PRECISION)
        d_row = tl.dot(keys, d_state, acc=d_row, input_precision=PRECISION)
        d_state = tl.dot(tl.trans(queries), d_out, acc=d_state * decay[:, None], input_precision=PRECISION)
        d_state -= tl.dot(tl.trans(w), d_row, input_precision=PRECISION)
        tl.store(d_written + index * C * V + column + tile(C, BV, V), d_row)


@jit
def sum_columns(  # noqa: PLR0913 -- a kernel takes pointers one by one
    v: tl.tensor,
    states: tl.tensor,
    written: tl.tensor,
    d_o: tl.tensor,
    d_states: tl.tensor,
    d_written: tl.tensor,
    d_v: tl.tensor,
    keys: tl.tensor,
    inverse: tl.tensor,
    scale: tl.tensor,
    mask: tl.tensor,
    H: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    BV: tl.constexpr,
    PRECISION: tl.constexpr,
) -> tuple[tl.tensor, ...]:
    """dV, stored; dO S^T, -dR S^T and E dS_next^T [C, K]; rowsum(dS_next S) [K]; dM, dP [C, C]; rowsum(dX R) [C].

    The system is M E = X with M = I + diag(beta) A, X = diag(beta) R, R = V - (K exp G) S. keys: K exp G. The pointers
    are those of the chunk. Entries of dM and dP above the diagonal are meaningless.
    """
    d_queries = tl.zeros((C, K), tl.float32)
    d_keys = tl.zeros((C, K), tl.float32)
    d_ends = tl.zeros((C, K), tl.float32)
    d_decay = tl.zeros((K,), tl.float32)
    d_system = tl.zeros((C, C), tl.float32)
    d_read = tl.zeros((C, C), tl.float32)
    d_scale = tl.zeros((C,), tl.float32)
    for column in tl.range(0, V, BV, num_stages=1):
        rows_at = column + tile(C, BV, H * V)
        chunk_at = column + tile(C, BV, V)
        state = tl.load(states + column + tile(K, BV, V)).to(tl.float32)
        rest = tl.load(v + rows_at, mask=mask, other=0.0).to(tl.float32)
        rest -= tl.dot(keys, state, input_precision=PRECISION)
        d_right = tl.dot(tl.trans(inverse), tl.load(d_written + chunk_at), input_precision=PRECISION)
        d_rest = d_right * scale[:, None]
        tl.store(d_v + rows_at, d_rest.to(d_v.dtype.element_ty), mask=mask)
        d_scale += tl.sum(d_right * rest, 1)
        row = tl.load(written + chunk_at)
        d_out = tl.load(d_o + rows_at, mask=mask, other=0.0).to(tl.float32)
        d_system = tl.dot(-d_right, tl.trans(row), acc=d_system, input_precision=PRECISION)
        d_read = tl.dot(d_out, tl.trans(row), acc=d_read, input_precision=PRECISION)
        d_queries = tl.dot(d_out, tl.trans(state), acc=d_queries, input_precision=PRECISION)
        d_keys = tl.dot(-d_rest, tl.trans(state), acc=d_keys, input_precision=PRECISION)
        d_state = tl.load(d_states + column + tile(K, BV, V)).to(tl.float32)
        d_decay += tl.sum(d_state * state, 1)
        d_ends = tl.dot(row, tl.trans(d_state), acc=d_ends, input_precision=PRECISION)
    return d_queries, d_keys, d_ends, d_decay, d_system, d_read, d_scale


@jit
def gradient_kernel(  # noqa: PLR0913 -- a kernel takes pointers one by one
    q: tl.tensor,
    k: tl.tensor,
    v: tl.tensor,
    log_decay: tl.tensor,
    beta: tl.tensor,
    starts: tl.tensor,
    work: tl.tensor,
    states: tl.tensor,
    written: tl.tensor,
    d_o: tl.tensor,
    d_states: tl.tensor,
    d_written: tl.tensor,
    d_q: tl.tensor,
    d_k: tl.tensor,
    d_v: tl.tensor,
    d_log_decay: tl.tensor,
    d_beta: tl.tensor,
    T: tl.tensor,
    H: tl.constexpr,
    K: tl.constexpr,
    V: tl.constexpr,
    BV: tl.constexpr,
    PRECISION: tl.constexpr,
) -> None:
    """Program (n, head): all gradients of the rows of one chunk."""
    n = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    index = head * tl.cdiv(T, C) + n
    first = (head // H) * T + n * C
    present = n * C + tl.arange(0, C) < T
    mask = present[:, None]
    at = (first * H + head % H) * K + tile(C, K, H * K)
    rows_at = (first + tl.arange(0, C)) * H + head % H
    _, _, _, _, _, inverse_at, _ = record(work, index, K, V)
    row = tl.arange(0, C)[:, None]
    col = tl.arange(0, C)[None, :]

    total, middle, last = load_decays(log_decay, at, mask)
    document, documents = load_documents(starts + first, present)
    same = document[:, None] == document[None, :]
    from_start = tl.where(document[:, None] == 0, tl.exp(total), 0.0)
    keys = tl.load(k + at, mask=mask, other=0.0).to(tl.float32)
    scale = tl.load(beta + rows_at, mask=present, other=0.0).to(tl.float32)
    inverse = tl.load(inverse_at + tile(C, C, C))

    # Through the states before and behind the chunk.
    value_at = (first * H + head % H) * V
    d_queries, d_keys, d_sent, d_decay, d_system, d_read, d_scale = sum_columns(
        v + value_at,
        states + index * K * V,
        written + index * C * V,
        d_o + value_at,
        d_states + index * K * V,
        d_written + index * C * V,
        d_v + value_at,
        keys * from_start,
        inverse,
        scale,
        mask,
        H,
        K,
        V,
        BV,
        PRECISION,
    )
    d_queries *= from_start
    d_keys *= from_start
    d_sent *= tl.where((document == documents)[:, None], tl.exp(last[None, :] - total), 0.0)
    d_last = tl.where(documents == 0, tl.exp(last), 0.0) * d_decay + tl.sum(d_sent * keys, 0)

    # Through A and P.
    to_row = tl.exp(total - middle[None, :])
    from_row = tl.exp(middle[None, :] - total)
    sent = keys * from_row
    received = keys * to_row
    recall = tl.dot(received, tl.trans(sent), input_precision=PRECISION)
    recall = tl.where((row > col) & same, recall, 0.0)  # above the diagonal it may be infinite
    d_system = tl.where((row > col) & same, d_system, 0.0)
    tl.store(d_beta + rows_at, d_scale + tl.sum(d_system * recall, 1), mask=present)
    d_recall = d_system * scale[:, None]
    d_diagonal = tl.sum(tl.where(row == col, d_read, 0.0), 1)[:, None]
    d_read = tl.where((row > col) & same, d_read, 0.0)
    d_keys += tl.dot(d_recall, sent, input_precision=PRECISION) * to_row
    d_sent += tl.dot(tl.trans(d_recall), received, input_precision=PRECISION) * from_row
    d_queries += tl.dot(d_read, sent, input_precision=PRECISION) * to_row
    queries = tl.load(q + at, mask=mask, other=0.0).to(tl.float32)
    d_sent += tl.dot(tl.trans(d_read), queries * to_row, input_precision=PRECISION) * from_row
    tl.store(d_q + at, (d_queries + d_diagonal * keys).to(d_q.dtype.element_ty), mask=mask)
    tl.store(d_k + at, (d_keys + d_sent + d_diagonal * queries).to(d_k.dtype.element_ty), mask=mask)

    d_total = d_queries * queries + (d_keys - d_sent) * keys
    d_g = tl.cumsum(d_total, 0, reverse=True) + d_last[None, :]
    started = tl.load(starts + first + tl.arange(0, C), mask=present, other=0)
    d_g = tl.where(started[:, None] != 0, 0.0, d_g)
    tl.store(d_log_decay + at, d_g.to(d_log_decay.dtype.element_ty), mask=mask)
