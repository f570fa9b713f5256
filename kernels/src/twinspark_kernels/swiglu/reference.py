"""Definition of the clamped SwiGLU: the gate is clamped from above only, the linear half on both sides."""

import torch

from twinspark_kernels.sigmoid import silu


def swiglu(gate: torch.Tensor, up: torch.Tensor, limit: float) -> torch.Tensor:
    """[T, F] in the dtype of gate; fp32 inside."""
    clamped_gate = gate.float().clamp(max=limit)
    clamped_up = up.float().clamp(-limit, limit)
    return silu(clamped_gate).mul_(clamped_up).to(gate.dtype)
