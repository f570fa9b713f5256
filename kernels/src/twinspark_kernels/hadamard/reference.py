"""Definition of the 128-point Hadamard transform: an fp32 butterfly with strides 1, 2, 4, ..., 64.

H[i][j] = (-1)^popcount(i & j) / sqrt(128) (Sylvester order). The order of the additions is part of the
format: the rotated input is rounded to fp16, so another order would move bits.
"""

import torch

BLOCK = 128
SCALE = 0.088388347648  # 1 / sqrt(128), as fp32 rounds it


def hadamard(x: torch.Tensor) -> torch.Tensor:
    """fp32 [..., n] from [..., n]; only elementwise additions, so a row never depends on another."""
    y = x.float().reshape(-1, BLOCK)
    # Each pass adds and subtracts neighbours (stride 1) and moves that index bit to the top, so that the
    # next pass meets stride 2 as neighbours. After seven passes every bit is back in its place.
    for _ in range(7):
        even, odd = y.view(-1, BLOCK // 2, 2).unbind(2)
        y = torch.cat((even + odd, even - odd), 1)
    return (y * SCALE).view(x.shape)


def rotate_in(x: torch.Tensor, suh: torch.Tensor) -> torch.Tensor:
    """fp16 [..., K]: the scales are applied in fp16, then the transform in fp32, then one rounding."""
    return hadamard(x.to(torch.float16) * suh).to(torch.float16)


def rotate_out(y: torch.Tensor, svh: torch.Tensor) -> torch.Tensor:
    """fp32 [..., N]: transform and scales in fp32."""
    return hadamard(y) * svh.float()
