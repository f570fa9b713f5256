"""Definition of the layer norm: two passes in fp32, biased variance, one rounding at the end."""

import torch


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """[T, D] in the dtype of x."""
    values = x.float().contiguous()
    centred = values - values.mean(-1, keepdim=True)
    scale = torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)
    return ((centred * scale) * weight.float() + bias.float()).to(x.dtype)
