"""Scales and rotations: a Gaussian look, and the way back."""

import torch
from torch import Tensor

from twinspark_demo.quantization.rotation import CODEBOOK_STD, draw_scales, restore, rotate


def uneven(count: int, rows: int, columns: int) -> Tensor:
    """Not Gaussian at all: a few large entries, columns of very different size."""
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(count, rows, columns, generator=generator) ** 5
    return weights * torch.logspace(-1, 1, columns)


def test_rotated_weights_have_the_spread_of_the_codebook() -> None:
    weights = uneven(2, 256, 384)
    inner = rotate(weights, *draw_scales(weights, torch.Generator().manual_seed(1)))
    assert abs(inner.square().mean().sqrt() - CODEBOOK_STD) < 1e-3
    assert inner.abs().max() < 6 * CODEBOOK_STD


def test_restore_inverts_rotate() -> None:
    weights = uneven(2, 256, 128)
    weights[1, :, 5] = 0
    su, sv = draw_scales(weights, torch.Generator().manual_seed(1))
    inner = rotate(weights, su, sv)
    for weight, *parts in zip(weights, inner, su, sv, strict=True):
        back = restore(*parts)
        assert (back - weight).abs().max() < 1e-5 * weight.abs().max()
    assert torch.count_nonzero(restore(inner[1], su[1], sv[1])[:, 5]) == 0


def test_signs_differ_between_matrices() -> None:
    weights = uneven(1, 128, 128).expand(2, -1, -1)
    su, sv = draw_scales(weights, torch.Generator().manual_seed(1))
    assert 32 < (su[0].sign() != su[1].sign()).sum() < 96
    assert 32 < (sv[0].sign() != sv[1].sign()).sum() < 96
