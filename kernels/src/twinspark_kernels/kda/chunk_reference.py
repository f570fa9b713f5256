"""Definition of KDA over cells of 64 absolute positions: the chunk form, which computes prompt rows.

First everything that does not need the state, for all cells at once; then one pass over the cells of each segment in
order. Every matrix product has a shape that the cell and the head fix, so its bits do not depend on how many run
together. README.md derives the formulas.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from twinspark_kernels.kda.inputs import KdaInputs, KdaParams, PreparedRows, prepare_rows
from twinspark_kernels.segments import Segment, slot_index, split_segments

CELL = 64
# Scaling by decays over 8 tokens stays inside fp32 down to a log decay of -10 a token; over 16 it would not.
SUB = 8
NUM_SUBS = CELL // SUB


@dataclass(frozen=True, slots=True)
class CellProducts:
    """What the pass over the state needs of N cells and H heads, fp32 with batch N * H.

    wq [2 * CELL, K] corrections over queries, u [CELL, V], qk [CELL, CELL], k_end [CELL, K], decay [K, 1].
    """

    wq: Tensor
    u: Tensor
    qk: Tensor
    k_end: Tensor
    decay: Tensor


def kda_chunk(inputs: KdaInputs, params: KdaParams, state: Tensor, slots: Tensor, positions: Tensor) -> Tensor:
    """o [T, H, V]; see the public op."""
    segments = sorted(split_segments(slots, positions), key=lambda segment: -segment.length)
    for segment in segments:
        if segment.position % CELL:
            raise ValueError(f"positions: a segment must start at a multiple of {CELL}, got {segment.position}")
    rows = prepare_rows(inputs, params)
    out = torch.zeros_like(rows.v)
    if segments:
        source, target, steps = _lay_out_cells(segments, state.device)
        cells = _pack_cells(rows, source, target, sum(steps))
        found = _walk_cells(_cell_products(cells), state, slot_index(segments, state.device), steps)
        out.index_copy_(0, source, found.transpose(1, 2).reshape(-1, *out.shape[1:]).index_select(0, target))
    return out.to(inputs.q.dtype)


def _lay_out_cells(segments: list[Segment], device: torch.device) -> tuple[Tensor, Tensor, list[int]]:
    """Rows of the forward, their places among the cells, and the number of cells of each step of the pass.

    The n-th cells of all segments lie side by side, in the order of `segments` (longest first): a step of the pass is
    then a slice of the cells and a prefix of the states.
    """
    counts = [-(-segment.length // CELL) for segment in segments]
    steps = [sum(count > step for count in counts) for step in range(counts[0])]
    firsts = torch.tensor([0, *steps]).cumsum(0)[:-1]
    in_cell = torch.arange(CELL)
    source = [torch.arange(segment.start, segment.stop) for segment in segments]
    target = [
        ((firsts[:count, None] + place) * CELL + in_cell).flatten()[: segment.length]
        for place, (segment, count) in enumerate(zip(segments, counts, strict=True))
    ]
    return torch.cat(source).to(device), torch.cat(target).to(device), steps


def _pack_cells(rows: PreparedRows, source: Tensor, target: Tensor, num_cells: int) -> PreparedRows:
    """Rows as [N, H, CELL, ...]. Places without a row are zero: they write nothing, and decay nothing (log decay 0)."""

    def pack(x: Tensor) -> Tensor:
        packed = x.new_zeros(num_cells * CELL, *x.shape[1:])
        packed.index_copy_(0, target, x.index_select(0, source))
        return packed.view(num_cells, CELL, *x.shape[1:]).transpose(1, 2).contiguous()

    return PreparedRows(pack(rows.q), pack(rows.k), pack(rows.v), pack(rows.log_decay), pack(rows.beta))


def _cell_products(cells: PreparedRows) -> CellProducts:
    """All that one cell knows without the state, for every cell and head."""
    K, V = cells.q.shape[-1], cells.v.shape[-1]
    q, k, log_decay = (x.view(-1, NUM_SUBS, SUB, K) for x in (cells.q, cells.k, cells.log_decay))
    beta = cells.beta.view(-1, CELL, 1)
    inside = log_decay.cumsum(2)  # log decay since the start of the sub-block, this row included
    ends = inside[:, :, -1]  # [batch, NUM_SUBS, K]
    # Since the start of the cell, up to each sub-block and the end; no sum holds a row and takes it away again.
    before = torch.nn.functional.pad(ends, (0, 0, 1, 0)).cumsum(1)
    since_start = (before[:, :-1, None] + inside).exp().view(-1, CELL, K)
    products, k_end = _decayed_products(q, k, inside, ends)
    kk, qk = products.tril_().unbind(1)
    right = torch.cat((cells.v.view(-1, CELL, V) * beta, k.view(-1, CELL, K) * since_start * beta), -1)
    solved = torch.linalg.solve_triangular(kk * beta, right, upper=False, unitriangular=True)
    u, w = solved.split((V, K), -1)
    wq = torch.cat((w, q.view(-1, CELL, K) * since_start), 1)
    return CellProducts(wq, u.contiguous(), qk, k_end, before[:, -1].exp()[..., None])


def _decayed_products(q: Tensor, k: Tensor, inside: Tensor, ends: Tensor) -> tuple[Tensor, Tensor]:
    """Products of each row with the keys up to it, decayed from key to row: [batch, 2 (k, q), CELL, CELL].

    Also the keys decayed to the end of the cell [batch, CELL, K]. Entries above the diagonal are meaningless. Row and
    key are scaled to the start of the row's sub-block, so that no factor exceeds exp(SUB * -lower_bound).
    """
    batch, _, _, K = k.shape
    left = (torch.stack((k, q), 2) * inside.exp()[:, :, None]).view(batch, NUM_SUBS, 2 * SUB, K)
    own = k * (-inside).exp()
    ended = k * (ends[:, :, None] - inside).exp()
    to_end = ends.exp()[:, :, None]
    products = k.new_zeros(batch, 2, CELL, CELL)
    keys = k.new_empty(batch, CELL, K)  # those of earlier sub-blocks, decayed to the start of this one; then its own
    for sub in range(NUM_SUBS):
        first, stop = sub * SUB, (sub + 1) * SUB
        keys[:, first:stop] = own[:, sub]
        product = torch.bmm(left[:, sub], keys[:, :stop].transpose(1, 2))
        products[:, :, first:stop, :stop] = product.view(batch, 2, SUB, stop)
        keys[:, :first] *= to_end[:, sub]
        keys[:, first:stop] = ended[:, sub]
    return products, keys


def _walk_cells(cells: CellProducts, state: Tensor, index: Tensor, steps: list[int]) -> Tensor:
    """o [N, H, CELL, V] of all cells; moves the states of the slots `index` on in place."""
    _, H, K, V = state.shape
    M = state.index_select(0, index).view(-1, K, V)
    out = torch.empty_like(cells.u)
    first = 0
    for count in steps:
        stop = first + count * H
        at = slice(first, stop)
        past = M[: count * H]
        recalled, read = torch.bmm(cells.wq[at], past).chunk(2, 1)
        written = cells.u[at] - recalled
        out[at] = torch.bmm(cells.qk[at], written).add_(read)
        past.mul_(cells.decay[at]).add_(torch.bmm(cells.k_end[at].transpose(1, 2), written))
        first = stop
    state.index_copy_(0, index, M.view(-1, H, K, V))
    return out.view(-1, H, CELL, V)
