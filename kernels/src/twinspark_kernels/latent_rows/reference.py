"""Definition of latent rows in blocks: a copy, or e4m3 values with one power-of-two scale a row."""

import torch
from torch import Tensor

from twinspark_kernels.paged import PagedRows

E4M3_MAX = 448.0
# 448 is 0.875 * 2^9.
MAX_FRACTION = 0.875
MAX_EXPONENT = 9
LEAST_EXPONENT = -149
LEAST_NORMAL_EXPONENT = -126
EXPONENT_BIAS = 127
MANTISSA_BITS = 23


def write_latents(rows: Tensor, latents: PagedRows, slots: Tensor, positions: Tensor) -> None:
    """See the public op."""
    if latents.scales is None:
        latents.write(slots, positions, rows)
        return
    places = latents.places(slots, positions)
    values, scales = quantize_rows(rows)
    # Bytes: torch copies no e4m3 rows by index.
    latents.values.view(torch.uint8).view(-1, latents.width).index_copy_(0, places, values.view(torch.uint8))
    latents.scales.view(-1).index_copy_(0, places, scales)


def quantize_rows(rows: Tensor) -> tuple[Tensor, Tensor]:
    """See the public op."""
    values = rows.float()
    scales = power_of_two_scales(values.abs().amax(-1))
    return (values / scales[:, None]).to(torch.float8_e4m3fn), scales


def power_of_two_scales(amax: Tensor) -> Tensor:
    """fp32 [T]: the smallest power of two s with amax / s <= 448; 1 where amax is 0, NaN where it is not finite.

    amax is m * 2^e with m in [0.5, 1), and 448 = 0.875 * 2^9: so s is 2^(e - 9), or twice that where m > 0.875.
    """
    fraction, exponent = torch.frexp(amax)
    exponent = (exponent - MAX_EXPONENT + (fraction > MAX_FRACTION)).clamp(min=LEAST_EXPONENT)
    finite = amax.isfinite()
    return _power_of_two(exponent.where((amax > 0) & finite, 0)).where(finite, torch.nan)


def _power_of_two(exponent: Tensor) -> Tensor:
    """fp32 2^exponent for int32 exponents from -149 on, by its bits: a library's power may be one ulp off."""
    normal = (exponent + EXPONENT_BIAS) << MANTISSA_BITS
    subnormal = torch.ones_like(exponent) << (exponent - LEAST_EXPONENT).clamp(max=MANTISSA_BITS)
    return normal.where(exponent >= LEAST_NORMAL_EXPONENT, subnormal).view(torch.float32)
