"""Seeded draws that give the same bits on every machine: sums of uniform numbers, no transcendental function."""

import torch
from torch import Tensor


class Draws:
    """One seeded sequence of random tensors."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def uniform(self, shape: tuple[int, ...], low: float, high: float) -> Tensor:
        """fp32, even between low and high."""
        return torch.rand(shape, generator=self._generator) * (high - low) + low

    def bell(self, shape: tuple[int, ...], std: float) -> Tensor:
        """fp32, nearly normal around 0: the sum of four uniform numbers, whose variance is 1/3 together."""
        total = self.uniform(shape, -0.5, 0.5)
        for _ in range(3):
            total += self.uniform(shape, -0.5, 0.5)
        return total * (std * 3**0.5)

    def signs(self, shape: tuple[int, ...]) -> Tensor:
        """fp32, -1 or 1."""
        return torch.randint(0, 2, shape, generator=self._generator) * 2.0 - 1.0

    def words(self, shape: tuple[int, ...]) -> Tensor:
        """int16, every bit pattern."""
        return torch.randint(-(1 << 15), 1 << 15, shape, generator=self._generator, dtype=torch.int16)
