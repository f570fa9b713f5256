"""RMS norm with a weight, over the last axis. CPU tensors run the reference.

CONTRACT.md, where it differs from the common answers:
3. Arithmetic: fp32 statistics; the normed value is rounded to the dtype of x before the product with the weight (as
   Transformers does, bit for bit).
8. Limits: rows of at most 32,768 values.
"""

import torch

from twinspark_kernels.rms_norm import reference

__all__ = ["rms_norm"]


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return weight * round(x / sqrt(mean(x^2) + eps)): the shape and dtype of `x`.

    x [T, ..., D]; weight [D], any float dtype. Statistics are fp32.
    """
    if x.dim() < 2:
        raise ValueError(f"x: must be [rows, ..., width], got shape {tuple(x.shape)}")
    if weight.shape != x.shape[-1:]:
        raise ValueError(f"weight: must be [{x.shape[-1]}], got shape {tuple(weight.shape)}")
    return reference.rms_norm(x, weight, eps)
