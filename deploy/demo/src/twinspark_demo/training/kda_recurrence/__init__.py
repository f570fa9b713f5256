"""KDA's recurrence with gradients: CUDA tensors run Triton kernels over chunks of 16 tokens, others PyTorch.

`reference.py` defines it, token by token; `chunked.py` has the formulas of the chunks.
"""

import torch
from torch import Tensor

from twinspark_demo.training.kda_recurrence import chunked

__all__ = ["kda_recurrence"]


def kda_recurrence(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, beta: Tensor, starts: Tensor) -> Tensor:
    """o [B, T, H, V] in the dtype of v; gradients for all inputs but starts.

    q, k [B, T, H, K] (of unit length, q scaled) and v [B, T, H, V] bf16 or fp32; log_decay [B, T, H, K] fp32 in
    [-10, 0]; beta [B, T, H] fp32; starts [B, T] bool or uint8: the state is zero before this token. It is zero before
    token 0 too. On CUDA K and V are powers of two from 16 on. Raises ValueError for shapes that do not fit, TypeError
    for a dtype of starts.
    """
    _check(q, k, v, log_decay, beta, starts)
    if v.is_cuda:
        # Triton exists on machines with a GPU only.
        from twinspark_demo.training.kda_recurrence import function

        return function.kda_recurrence(q, k, v, log_decay, beta, starts)
    return chunked.kda_recurrence(q, k, v, log_decay, beta, starts)


def _check(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, beta: Tensor, starts: Tensor) -> None:
    rows = q.shape[:3]
    if q.dim() != 4 or k.shape != q.shape or log_decay.shape != q.shape:
        raise ValueError(f"q, k, log_decay: must be [B, T, H, K], got {[*q.shape]}, {[*k.shape]}, {[*log_decay.shape]}")
    if v.dim() != 4 or v.shape[:3] != rows or beta.shape != rows or starts.shape != rows[:2]:
        found = f"{[*v.shape]}, {[*beta.shape]}, {[*starts.shape]}"
        raise ValueError(f"v, beta, starts: must be [B, T, H, V], [B, T, H], [B, T] of q's rows, got {found}")
    if starts.dtype not in (torch.bool, torch.uint8):
        raise TypeError(f"starts: must be bool or uint8, got {starts.dtype}")
