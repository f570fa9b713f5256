"""EXL3: trellis-quantized weights of 1 to 8 bits.

1. Inputs: trellis int16 [K/16, N/16, 16 * b], b 1 to 8; suh fp16 [K], svh fp16 [N], K and N multiples of 128; x [T, I],
   I at most K, any float dtype. Shapes and dtypes are checked.
2. Outputs: decode_tiles writes fp16 [K, N], exl3_linear fp32 [T, N], both new and in full.
3. Arithmetic: the decoded weight is exact; the rotated input is rounded to fp16; products accumulate in fp32. Relative
   distance to float64 about 3e-4, all of it from that one rounding.
4. Row invariance: yes, by that of hadamard and linear; block sizes depend on the row class only.
5. Rank order: a cut of N needs no sum. A cut of K sums partial results after the output rotation (it is linear).
6. Side effects: none; decode_tiles uses about 40 bytes of workspace a weight.
7. Graph capture: exl3_linear reads nothing back.
8. Limits: CPU reference.
"""

import torch

from twinspark_kernels.exl3 import reference
from twinspark_kernels.exl3.codebook import (
    MCG_MULTIPLIER,
    MUL1_MULTIPLIER,
    Codebook,
    codebook_from_markers,
    codebook_table,
)
from twinspark_kernels.exl3.signs import pack_signs, unpack_signs
from twinspark_kernels.exl3.tiles import TILE, pack_states, tile_bits, to_stream_order, unpack_states
from twinspark_kernels.exl3.weight import Exl3Weight
from twinspark_kernels.row_class import RowClass

__all__ = [
    "MCG_MULTIPLIER",
    "MUL1_MULTIPLIER",
    "TILE",
    "Codebook",
    "Exl3Weight",
    "codebook_from_markers",
    "codebook_table",
    "decode_tiles",
    "exl3_linear",
    "pack_signs",
    "pack_states",
    "tile_bits",
    "to_stream_order",
    "unpack_signs",
    "unpack_states",
]


def decode_tiles(trellis: torch.Tensor, codebook: Codebook) -> torch.Tensor:
    """The inner weight fp16 [K, N] of packed tiles int16 [K/16, N/16, 16 * b]."""
    if trellis.dtype != torch.int16 or trellis.dim() != 3:
        raise ValueError(f"a trellis is int16 of three axes, got {trellis.dtype} {tuple(trellis.shape)}")
    tile_bits(trellis)
    return reference.decode_tiles(trellis, codebook)


def exl3_linear(x: torch.Tensor, weight: Exl3Weight, *, row_class: RowClass) -> torch.Tensor:
    """y fp32 [T, N] of x [T, I]; columns of x that are missing up to K count as zero."""
    if x.dim() != 2 or x.shape[1] > weight.suh.shape[0]:
        raise ValueError(f"x has shape {tuple(x.shape)}, at most {weight.suh.shape[0]} columns are needed")
    expected = (weight.suh.shape[0], weight.svh.shape[0])
    if tuple(weight.inner.shape) != expected:
        raise ValueError(f"the inner weight has shape {tuple(weight.inner.shape)}, its scales say {expected}")
    return reference.exl3_linear(x, weight, row_class)
