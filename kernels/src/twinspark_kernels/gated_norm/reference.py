"""Definition of the gated norm: norm, weight and gate in fp32, one rounding at the end."""

import torch

from twinspark_kernels.sigmoid import sigmoid


def gated_norm(o: torch.Tensor, gate: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """[T, H, V] in the dtype of o."""
    values = o.float().contiguous()
    scale = torch.rsqrt(values.square().mean(-1, keepdim=True) + eps)
    return (weight.float() * (values * scale) * sigmoid(gate.float().contiguous())).to(o.dtype)
