"""The recurrence over chunks of 16 tokens in PyTorch: what CPU tensors run, with autograd's gradients.

With G the sum of log decays since the start of the chunk, S the state before it and E the rows e of its tokens:

    A[i, j] = k_i . (k_j exp(G_i - G_j)) for j < i,   P[i, j] = q_i . (k_j exp(G_i - G_j)) for j <= i
    (I + diag(beta) A) E = diag(beta) (V - (K exp G) S),   O = (Q exp G) S + P E
    S <- diag(exp G_last) S + (K exp(G_last - G))^T E

exp(G_i - G_j) is a product of exp(G_i - G_middle) and exp(G_middle - G_j): with log decays down to -10 a token neither
leaves fp32. Pairs of two documents are masked, and so is S behind a document start. The diagonal of P has no decay:
kept apart, it leaves no error in the gradient of G, where it cancels.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK = 16


@dataclass(frozen=True, slots=True)
class Chunks:
    """Rows as [B, H, N, CHUNK, ...], filled up with zeros behind T; document: number of starts up to the row."""

    q: Tensor
    k: Tensor
    v: Tensor
    log_decay: Tensor
    beta: Tensor
    document: Tensor


def kda_recurrence(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, beta: Tensor, starts: Tensor) -> Tensor:
    """o [B, T, H, V] in the dtype of v; arguments as in the public op. Computes in fp32, or in float64 if v has it."""
    dtype = torch.promote_types(v.dtype, torch.float32)
    with torch.autocast(v.device.type, enabled=False):
        document = _cut(starts[:, :, None, None].to(torch.int32)).cumsum(3)
        q, k, values, log_decay, beta = (_cut(x.to(dtype)) for x in (q, k, v, log_decay, beta[..., None]))
        out = _walk(Chunks(q, k, values, log_decay, beta, document))
        return out.transpose(1, 2)[:, : v.shape[1]].to(v.dtype)


def _cut(x: Tensor) -> Tensor:
    """[B, T, H, D] as [B, H, N, CHUNK, D]."""
    x = F.pad(x, (0, 0, 0, 0, 0, -x.shape[1] % CHUNK))
    return x.reshape(x.shape[0], -1, CHUNK, *x.shape[2:]).permute(0, 3, 1, 2, 4)


def _walk(rows: Chunks) -> Tensor:
    """o [B, H, N * CHUNK, V]: all that needs no state for every chunk at once, then one pass over the chunks."""
    total = rows.log_decay.cumsum(3)
    last = total[..., -1:, :]
    first_document = rows.document == 0
    from_start = total.exp() * first_document
    to_end = (last - total).exp() * (rows.document == rows.document[..., -1:, :])
    recall, read = _pairs(rows, total)
    system = recall * rows.beta
    right = torch.cat((rows.v, rows.k * from_start), -1) * rows.beta
    solved = torch.linalg.solve_triangular(system, right, upper=False, unitriangular=True)
    u, w = solved.split((rows.v.shape[-1], rows.k.shape[-1]), -1)
    queries = rows.q * from_start
    keys = (rows.k * to_end).transpose(-1, -2)
    decay = (last.exp() * first_document[..., -1:, :]).transpose(-1, -2)
    state = u.new_zeros(*u.shape[:2], w.shape[-1], u.shape[-1])
    out = []
    for n in range(u.shape[2]):
        written = u[:, :, n] - w[:, :, n] @ state
        out.append(queries[:, :, n] @ state + read[:, :, n] @ written)
        state = decay[:, :, n] * state + keys[:, :, n] @ written
    return torch.cat(out, 2)


def _pairs(rows: Chunks, total: Tensor) -> tuple[Tensor, Tensor]:
    """A and P [B, H, N, CHUNK, CHUNK] of the module's docstring."""
    middle = total[..., CHUNK // 2 - 1 : CHUNK // 2, :]
    to_row, from_row = (total - middle).exp(), (middle - total).exp()
    keys = (rows.k * from_row).transpose(-1, -2)
    other = rows.document != rows.document.transpose(-1, -2)
    recall = ((rows.k * to_row) @ keys).masked_fill(other, 0.0).tril(-1)
    read = ((rows.q * to_row) @ keys).masked_fill(other, 0.0).tril(-1)
    return recall, read + torch.diag_embed((rows.q * rows.k).sum(-1))
