"""Row-invariant products with a weight: `linear` for one matrix, `head_linear` for one matrix a head.

CPU tensors run the reference. CONTRACT.md, where it differs from the common answers:
1. Inputs: any mix of fp32, bf16, fp16; an fp32 weight whose inner width is a multiple of 16 is read in place, others
   are widened or padded at every call.
3. Arithmetic: operands widened to fp32, fp32 accumulation in the order of the BLAS; 1e-5 relative to float64.
4. Row invariance: tiles of `RowClass.tile_rows` rows, always computed whole (README.md).
6. Workspace: one padded fp32 copy of x where x is not whole aligned tiles.
"""

import torch

from twinspark_kernels.linear import reference
from twinspark_kernels.row_class import RowClass

__all__ = ["head_linear", "linear"]


def linear(
    x: torch.Tensor, weight: torch.Tensor, *, row_class: RowClass, out_dtype: torch.dtype | None = None
) -> torch.Tensor:
    """Return x @ weight.T: [T, O] in `out_dtype` (default: the dtype of `x`), rounded once from fp32.

    x [T, I] and weight [O, I], each fp32, bf16 or fp16; T may be 0.
    """
    if x.dim() != 2:
        raise ValueError(f"x: must be [rows, in], got shape {tuple(x.shape)}")
    if weight.dim() != 2 or weight.shape[1] != x.shape[1]:
        raise ValueError(f"weight: must be [out, {x.shape[1]}] for x {tuple(x.shape)}, got {tuple(weight.shape)}")
    return reference.linear(x, weight, row_class.tile_rows, out_dtype or x.dtype)


def head_linear(
    x: torch.Tensor, weight: torch.Tensor, *, row_class: RowClass, out_dtype: torch.dtype | None = None
) -> torch.Tensor:
    """Return x[:, h] @ weight[h] for every head: [T, H, O] in `out_dtype` (default: the dtype of `x`).

    x [T, H, I] and weight [H, I, O], each fp32, bf16 or fp16; either may be a strided view; T may be 0.
    """
    if x.dim() != 3:
        raise ValueError(f"x: must be [rows, heads, in], got shape {tuple(x.shape)}")
    if weight.dim() != 3 or weight.shape[:2] != x.shape[1:]:
        expected = f"[{x.shape[1]}, {x.shape[2]}, out]"
        raise ValueError(f"weight: must be {expected} for x {tuple(x.shape)}, got {tuple(weight.shape)}")
    return reference.head_linear(x, weight, row_class.tile_rows, out_dtype or x.dtype)
