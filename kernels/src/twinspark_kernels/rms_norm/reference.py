"""Definition of the RMS norm (Llama form): the normed value is rounded to the dtype of x before the weight."""

import torch


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """[T, ..., D] in the dtype of x: round(weight * round(x * rsqrt(mean(x^2) + eps)))."""
    values = x.float().contiguous()
    scale = torch.rsqrt(values.square().mean(-1, keepdim=True) + eps)
    return weight.to(x.dtype) * (values * scale).to(x.dtype)
