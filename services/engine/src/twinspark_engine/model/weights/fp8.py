"""Block FP8: e4m3 values times one fp32 scale for each 128 x 128 block, in fp32."""

import torch
from torch import Tensor

from twinspark_engine.model.weights.quantization import FP8_BLOCK


def dequantize(values: Tensor, scales: Tensor, first_row: int, first_column: int) -> Tensor:
    """fp32 [r, c] of values e4m3 [r, c], a cut of a larger matrix that starts at the given place.

    scales fp32 [ceil(rows / 128), ceil(columns / 128)] are the whole matrix's, so a cut may start and end anywhere.
    """
    row_blocks = (torch.arange(values.shape[0]) + first_row) // FP8_BLOCK
    column_blocks = (torch.arange(values.shape[1]) + first_column) // FP8_BLOCK
    return values.float() * scales[row_blocks][:, column_blocks]
