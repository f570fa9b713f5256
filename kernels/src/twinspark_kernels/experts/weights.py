"""The routed experts of one layer as one rank holds them: its part of their width."""

from dataclasses import dataclass

import torch

from twinspark_kernels.exl3 import Exl3Weight


@dataclass(frozen=True, slots=True)
class PlainExperts:
    """Unquantized experts. E experts, D hidden, F this rank's width of an expert; any float dtype."""

    gate_up: torch.Tensor  # [E, 2 F, D]: gate rows, then up rows
    down: torch.Tensor  # [E, D, F]

    @property
    def count(self) -> int:
        """Number of experts E."""
        return self.gate_up.shape[0]

    @property
    def hidden(self) -> int:
        """Width of the rows that go in and come out."""
        return self.gate_up.shape[2]


@dataclass(frozen=True, slots=True)
class Exl3Experts:
    """EXL3 experts, decoded once: an Exl3Weight a projection, each of its tensors stacked over the experts first."""

    gate: Exl3Weight  # inner [E, D, F], suh [E, D], svh [E, F]
    up: Exl3Weight  # as gate
    down: Exl3Weight  # inner [E, F, D], suh [E, F], svh [E, D]

    @property
    def count(self) -> int:
        """Number of experts E."""
        return self.gate.inner.shape[0]

    @property
    def hidden(self) -> int:
        """Width of the rows that go in and come out."""
        return self.gate.inner.shape[1]
