"""The global scale of a quantization: by how much rotated weights are stretched before the trellis search."""

import torch
from torch import Tensor

from twinspark_demo.quantization.viterbi import encode_tiles
from twinspark_kernels.exl3 import Codebook, codebook_table

STEP = 0.1
SCALES = tuple(round(0.6 + STEP * i, 1) for i in range(8))  # optima: 0.72 (8 bits, mul1) to 1.15 (1 bit)
LEAST_SAMPLE = 16  # tiles
SAMPLE_EVERY = 256  # of more tiles: one in so many


def find_scale(tiles: Tensor, bits: int, codebook: Codebook) -> float:
    """The scale of least squared error on evenly spaced ones of the tiles fp32 [n, 256], by a parabola at the best."""
    size = min(len(tiles), max(LEAST_SAMPLE, len(tiles) // SAMPLE_EVERY))
    places = torch.linspace(0, len(tiles) - 1, size, device=tiles.device).long()
    sample = tiles[places]
    scales = torch.tensor(SCALES, device=tiles.device)[:, None, None]
    states = encode_tiles((sample * scales).flatten(0, 1), bits, codebook).view(len(SCALES), -1, tiles.shape[1])
    decoded = codebook_table(codebook).to(tiles.device)[states].float() / scales
    return _lowest((decoded - sample).square().mean((1, 2)).tolist())


def _lowest(errors: list[float]) -> float:
    best = errors.index(min(errors))
    if not 0 < best < len(errors) - 1:
        return SCALES[best]
    left, middle, right = errors[best - 1 : best + 2]
    curve = left - 2 * middle + right
    return SCALES[best] + (STEP * (left - right) / (2 * curve) if curve > 0 else 0.0)
