"""Writes the latent rows of a forward into their slots' blocks, plain or as FP8.

CPU tensors run the reference. CONTRACT.md, where it differs from the common answers:
1. Inputs: rows [T, L] in the dtype of plain blocks, any float dtype for FP8 blocks; positions of a slot in any order.
2. Outputs: none is returned. Written is one row (and its scale) for each row of a slot; rows of slot -1 write where the
   table's last row says, the trash block.
3. Arithmetic: plain rows are copied. FP8: the row times 1 / s, rounded to e4m3 to nearest even; s is the smallest power
   of two with amax / s <= 448, and 1 for a row of zeros, so that reading back (value * s) is exact in bf16 and fp32.
   A row that is not finite reads back as NaN.
4. Row invariance: a row's bits depend on that row alone.
6. Side effects: the blocks change in place.
8. Limits: a table entry times the rows of a block is an int64.
"""

from torch import Tensor

from twinspark_kernels.latent_rows import reference
from twinspark_kernels.paged import PagedRows, check_paged
from twinspark_kernels.segments import check_rows, check_shape

__all__ = ["E4M3_MAX", "quantize_rows", "write_latents"]

E4M3_MAX = reference.E4M3_MAX


def write_latents(rows: Tensor, latents: PagedRows, slots: Tensor, positions: Tensor) -> None:
    """Write row i, [L], as row positions[i] of slot slots[i].

    rows [T, L]; latents blocks [B, R, L] with their table; slots, positions int64 [T]. Every position lies in a block
    that the slot has. Raises TypeError and ValueError for wrong dtypes and shapes.
    """
    check_shape("rows", rows, (None, None))
    check_paged("latents", latents, rows.shape[1], latents.block_rows)
    if latents.scales is None and rows.dtype != latents.values.dtype:
        raise TypeError(f"rows: must have the dtype of plain latents, {latents.values.dtype}, got {rows.dtype}")
    check_rows(len(rows), slots, positions)
    reference.write_latents(rows, latents, slots, positions)


def quantize_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """(e4m3 values [T, L], scales fp32 [T]) of rows [T, L]."""
    check_shape("rows", rows, (None, None))
    if not rows.is_floating_point():
        raise TypeError(f"rows: must be a float dtype, got {rows.dtype}")
    return reference.quantize_rows(rows)
