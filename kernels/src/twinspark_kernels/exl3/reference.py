"""EXL3 linear in plain PyTorch: the definition.

W = diag(suh) H Wq H diag(svh) with H the blockwise 128-point Hadamard matrix, so y = (((x * suh) H) Wq H) * svh. The
rotated input is rounded to fp16, the decoded weight is the exact fp16 value, products accumulate in fp32, and what
follows stays in fp32.
"""

import torch

from twinspark_kernels.exl3.codebook import Codebook, codebook_table
from twinspark_kernels.exl3.tiles import from_stream_order, unpack_states
from twinspark_kernels.exl3.weight import Exl3Weight
from twinspark_kernels.hadamard import rotate_in, rotate_out
from twinspark_kernels.linear import linear
from twinspark_kernels.row_class import RowClass


def decode_tiles(trellis: torch.Tensor, codebook: Codebook) -> torch.Tensor:
    """int16 [K/16, N/16, 16 * b] -> Wq fp16 [K, N]."""
    return from_stream_order(codebook_table(codebook)[unpack_states(trellis)])


def exl3_linear(x: torch.Tensor, weight: Exl3Weight, row_class: RowClass) -> torch.Tensor:
    """x [T, I] of any float dtype, I at most K (the rest is padding) -> fp32 [T, N]."""
    rows, width = x.shape
    in_features = weight.suh.shape[0]
    if width < in_features:
        x = torch.cat((x, x.new_zeros(rows, in_features - width)), dim=-1)
    rotated = rotate_in(x, weight.suh).to(weight.inner.dtype)
    product = linear(rotated, weight.inner.t(), row_class=row_class, out_dtype=torch.float32)
    return rotate_out(product, weight.svh)
