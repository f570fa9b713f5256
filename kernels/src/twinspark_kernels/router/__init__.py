"""Choice and weights of the routed experts. CPU tensors run the reference.

CONTRACT.md, where it differs from the common answers:
3. Arithmetic: logits through `linear` in fp32; the order is a stable sort, the lower expert first among equals.
5. Rank order: every rank computes the same choice from the same bits; nothing is summed over ranks.
"""

import torch

from twinspark_kernels.router import reference
from twinspark_kernels.row_class import RowClass

__all__ = ["route"]


def route(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, *, top_k: int, scaling: float, row_class: RowClass
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return expert_ids [T, top_k] int64 and expert_weights [T, top_k] fp32, best score first.

    x [T, D] and weight [E, D], any float dtype, widened to fp32; bias [E] fp32 moves the choice, never the weights.
    Equal scores go to the lower expert. The weights of a row sum to `scaling`.
    """
    if x.dim() != 2:
        raise ValueError(f"x: must be [rows, hidden], got shape {tuple(x.shape)}")
    if weight.dim() != 2 or weight.shape[1] != x.shape[1]:
        raise ValueError(f"weight: must be [experts, {x.shape[1]}], got shape {tuple(weight.shape)}")
    if bias.shape != weight.shape[:1] or bias.dtype != torch.float32:
        raise ValueError(f"bias: must be float32 [{weight.shape[0]}], got {bias.dtype} {list(bias.shape)}")
    if not 1 <= top_k <= weight.shape[0]:
        raise ValueError(f"top_k: must be 1 to {weight.shape[0]}, the number of experts, got {top_k}")
    return reference.route(x, weight, bias, top_k, scaling, row_class)
