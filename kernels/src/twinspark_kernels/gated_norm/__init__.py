"""RMS norm of each head with a shared weight, times a sigmoid gate. CPU tensors run the reference.

CONTRACT.md, where it differs from the common answers:
3. Arithmetic: norm, weight and gate in fp32 without a rounding between them.
8. Limits: heads of at most 32,768 values.
"""

import torch

from twinspark_kernels.gated_norm import reference

__all__ = ["gated_norm"]


def gated_norm(o: torch.Tensor, gate: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return weight * o / sqrt(mean(o^2) + eps) * sigmoid(gate): the shape and dtype of `o`, rounded once.

    o and gate [T, H, V] (gate: raw logits); weight [V], shared by the heads. Everything before the rounding is fp32.
    """
    if o.dim() != 3:
        raise ValueError(f"o: must be [rows, heads, value dim], got shape {tuple(o.shape)}")
    if gate.shape != o.shape:
        raise ValueError(f"gate: must have the shape of o, {tuple(o.shape)}, got {tuple(gate.shape)}")
    if weight.shape != o.shape[-1:]:
        raise ValueError(f"weight: must be [{o.shape[-1]}], got shape {tuple(weight.shape)}")
    return reference.gated_norm(o, gate, weight, eps)
