"""Routed experts: the weighted sum of a row's chosen SwiGLU experts. CPU tensors run the reference.

CONTRACT.md, where it differs from the common answers:
1. Inputs: expert ids are checked against the number of experts.
3. Arithmetic: plain experts round gate, up and their product to the dtype of x; EXL3 experts keep fp32 and round only
   the rotated inputs, to fp16. Slots are added in slot order in fp32.
4. Row invariance: a (row, expert) pair is computed by itself, in tiles of at most 16 rows.
5. Rank order: the result is this rank's partial sum over its part of the experts' width.
7. Graph capture: the reference reads the number of rows of each expert.
"""

import torch

from twinspark_kernels.experts import reference
from twinspark_kernels.experts.weights import Exl3Experts, PlainExperts
from twinspark_kernels.row_class import RowClass

__all__ = ["Exl3Experts", "PlainExperts", "grouped_experts"]


def grouped_experts(
    x: torch.Tensor,
    expert_ids: torch.Tensor,
    expert_weights: torch.Tensor,
    experts: PlainExperts | Exl3Experts,
    *,
    swiglu_limit: float,
    row_class: RowClass,
) -> torch.Tensor:
    """Return sum over a row's slots of weight * expert(x): fp32 [T, D], this rank's partial sum.

    x [T, D] compute dtype; expert_ids [T, k] int64, each below the number of experts; expert_weights [T, k] fp32. A
    (row, expert) pair is computed by itself; the pairs of a row are added in slot order.
    """
    if x.dim() != 2 or x.shape[1] != experts.hidden:
        raise ValueError(f"x: must be [rows, {experts.hidden}], got shape {tuple(x.shape)}")
    if expert_ids.dim() != 2 or expert_ids.shape[0] != x.shape[0] or expert_ids.dtype != torch.int64:
        got = f"{expert_ids.dtype} {list(expert_ids.shape)}"
        raise ValueError(f"expert_ids: must be int64 [{x.shape[0]}, slots], got {got}")
    if expert_weights.shape != expert_ids.shape or expert_weights.dtype != torch.float32:
        got = f"{expert_weights.dtype} {list(expert_weights.shape)}"
        raise ValueError(f"expert_weights: must be float32 {list(expert_ids.shape)}, got {got}")
    return reference.grouped_experts(x, expert_ids, expert_weights, experts, swiglu_limit, row_class)
