"""Clamped SwiGLU, the activation of every MLP of this family. CPU tensors run the reference.

CONTRACT.md: the common answers hold; arithmetic is elementwise.
"""

import torch

from twinspark_kernels.swiglu import reference

__all__ = ["swiglu"]


def swiglu(gate: torch.Tensor, up: torch.Tensor, limit: float) -> torch.Tensor:
    """Return silu(min(gate, limit)) * clip(up, -limit, limit): the shape and dtype of `gate`, rounded once.

    gate and up [T, F] of one dtype, possibly two halves of one tensor; limit > 0.
    """
    if gate.dim() != 2:
        raise ValueError(f"gate: must be [rows, width], got shape {tuple(gate.shape)}")
    if up.shape != gate.shape or up.dtype != gate.dtype:
        raise ValueError(f"up: must match gate {tuple(gate.shape)} {gate.dtype}, got {tuple(up.shape)} {up.dtype}")
    if not limit > 0.0:
        raise ValueError(f"limit: must be over 0, got {limit}")
    return reference.swiglu(gate, up, limit)
