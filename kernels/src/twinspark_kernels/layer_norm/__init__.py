"""Layer norm with weight and bias, over the last axis. CPU tensors run the reference.

CONTRACT.md, where it differs from the common answers:
3. Arithmetic: mean first, then the variance of the centred values; rounded once.
8. Limits: rows of at most 32,768 values.
"""

import torch

from twinspark_kernels.layer_norm import reference

__all__ = ["layer_norm"]


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """Return weight * (x - mean) / sqrt(variance + eps) + bias: the shape and dtype of `x`, rounded once.

    x [T, D]; weight and bias [D], any float dtype. Everything before the rounding is fp32.
    """
    if x.dim() != 2:
        raise ValueError(f"x: must be [rows, width], got shape {tuple(x.shape)}")
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter.shape != x.shape[-1:]:
            raise ValueError(f"{name}: must be [{x.shape[-1]}], got shape {tuple(parameter.shape)}")
    return reference.layer_norm(x, weight, bias, eps)
