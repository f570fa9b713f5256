"""Keyed Gumbel noise and the draw that uses it: plain PyTorch.

The noise of a token id is a hash of (seed, position, id). No generator advances, so a draw repeats in any batch, at any
rank and with any number of drafted rows. The mixer is the finalizer of SplitMix64 (Steele, Lea, Flood 2014).
"""

import torch
from torch import Tensor

INCREMENT = 0x9E3779B97F4A7C15
POSITION_FACTOR = 0xD1B54A32D192ED03
FIRST_FACTOR = 0xBF58476D1CE4E5B9
SECOND_FACTOR = 0x94D049BB133111EB


def to_signed(value: int) -> int:
    """The int64 whose bits are those of `value` modulo 2^64: torch multiplies and adds int64 with wraparound."""
    value %= 1 << 64
    return value - (1 << 64) if value >= 1 << 63 else value


def _shift_right(x: Tensor, bits: int) -> Tensor:
    """Logical shift: int64's own shift copies the sign."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _mix(x: Tensor) -> Tensor:
    x = (x ^ _shift_right(x, 30)) * to_signed(FIRST_FACTOR)
    x = (x ^ _shift_right(x, 27)) * to_signed(SECOND_FACTOR)
    return x ^ _shift_right(x, 31)


def uniform(seeds: Tensor, positions: Tensor, ids: Tensor) -> Tensor:
    """Uniform numbers in (0, 1) of ids [T, n], given seeds [T] and positions [T]: float64 [T, n]."""
    row = _mix(_mix(seeds + to_signed(INCREMENT)) ^ (positions * to_signed(POSITION_FACTOR)))
    hashed = _shift_right(_mix(row[:, None] ^ ids), 11)
    # The sum alone can round to 1.0, whose noise would be infinite.
    return (hashed.double() * 2.0**-53 + 2.0**-54).clamp(max=1.0 - 2.0**-53)


def gumbel(seeds: Tensor, positions: Tensor, ids: Tensor) -> Tensor:
    """Standard Gumbel noise -ln(-ln u), float64 [T, n]."""
    return -torch.log(-torch.log(uniform(seeds, positions, ids)))


def draw(scaled: Tensor, ids: Tensor, kept: Tensor, seeds: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
    """Column [T] of the largest scaled + noise among the kept columns, ties to the lower id, and that score [T]."""
    scores = (scaled + gumbel(seeds, positions, ids)).masked_fill(~kept, -torch.inf)
    best = scores.amax(dim=-1)
    tied = torch.where((scores == best[:, None]) & kept, ids, torch.iinfo(torch.int64).max)
    return tied.argmin(dim=-1), best
