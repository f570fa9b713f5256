"""Definition of the trainable KDA recurrence, one token after the other, with autograd's gradients.

For each head, with state S [K, V], and S = 0 before a token that starts a document:

    S <- diag(exp g) S;   e = beta (v - S^T k);   S <- S + k e^T;   o = S^T q
"""

import torch
from torch import Tensor


def kda_recurrence(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, beta: Tensor, starts: Tensor) -> Tensor:
    """o [B, T, H, V] in the dtype of v; arguments as in the public op. Computes in fp32, or in float64 if v has it."""
    dtype = torch.promote_types(v.dtype, torch.float32)
    q, k, values, beta = q.to(dtype), k.to(dtype), v.to(dtype), beta.to(dtype)
    decay = log_decay.to(dtype).exp().masked_fill(starts.bool()[:, :, None, None], 0.0)
    state = values.new_zeros(*q.shape[:1], *q.shape[2:], v.shape[-1])
    out = []
    for t in range(q.shape[1]):
        state = state * decay[:, t, :, :, None]
        recalled = torch.einsum("bhkv,bhk->bhv", state, k[:, t])
        written = beta[:, t, :, None] * (values[:, t] - recalled)
        state = state + k[:, t, :, :, None] * written[:, :, None]
        out.append(torch.einsum("bhkv,bhk->bhv", state, q[:, t]))
    return torch.stack(out, 1).to(v.dtype)
