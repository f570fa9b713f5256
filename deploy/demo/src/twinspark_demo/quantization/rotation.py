"""Signs, scales and rotations that make a matrix look Gaussian to the trellis, and back.

W = diag(suh) H inner H diag(svh), H the blockwise 128-point Hadamard matrix. Matrices here are [K, N], y = x W.
"""

import torch
from torch import Tensor

from twinspark_kernels.hadamard import hadamard

CODEBOOK_STD = 1.24371088  # of 3inst's values; the search for the global scale absorbs what another codebook has
LEAST_SCALE = 1e-3  # of a row, to the mean row: a row of zeros comes back as nearly that


def draw_scales(weights: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """(su [M, K], sv [M, N]) fp32 of matrices fp32 [M, K, N]: random signs times what evens out columns, then rows.

    sv is 0 for a column of zeros. The generator is a CPU's, so that every device draws the same signs.
    """
    count, rows, columns = weights.shape
    norms = weights.square().mean(1).sqrt()
    mean = norms.mean(1, keepdim=True)
    sv = _signs((count, columns), generator).to(weights.device) * norms / torch.where(mean > 0, mean, 1.0)
    even = hadamard(weights / _divisors(sv)[:, None])
    rms = even.square().mean(2).sqrt()
    mean = rms.mean(1, keepdim=True)
    rms = torch.where(mean > 0, rms.maximum(LEAST_SCALE * mean), 1.0)
    return _signs((count, rows), generator).to(weights.device) * rms / CODEBOOK_STD, sv


def rotate(weights: Tensor, suh: Tensor, svh: Tensor) -> Tensor:
    """The inner matrices [M, K, N] of [M, K, N] under scales [M, K] and [M, N]; an svh of 0 stands for zeros."""
    inner = hadamard(weights / _divisors(svh)[:, None]) / suh[:, :, None]
    return hadamard(inner.transpose(1, 2)).transpose(1, 2).contiguous()


def restore(inner: Tensor, suh: Tensor, svh: Tensor) -> Tensor:
    """The inverse of rotate for one matrix: fp32 [K, N] of inner [K, N], suh [K] and svh [N]."""
    rows = hadamard(hadamard(inner).t()).t() * suh.float()[:, None]
    return (rows * svh.float()).contiguous()


def _divisors(scales: Tensor) -> Tensor:
    return torch.where(scales == 0, 1.0, scales)


def _signs(shape: tuple[int, int], generator: torch.Generator) -> Tensor:
    return torch.randint(0, 2, shape, generator=generator) * 2.0 - 1.0
