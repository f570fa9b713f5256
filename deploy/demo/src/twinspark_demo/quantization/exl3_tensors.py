"""Exl3Tensors: one quantized matrix as a checkpoint stores it."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from twinspark_kernels.exl3 import MCG_MULTIPLIER, MUL1_MULTIPLIER, Codebook, codebook_from_markers

MULTIPLIERS = {Codebook.MCG: MCG_MULTIPLIER, Codebook.MUL1: MUL1_MULTIPLIER}


@dataclass(frozen=True, slots=True)
class Exl3Tensors:
    """Tiles, scales and codebook of a linear layer of K inputs and N outputs at b bits; on the CPU."""

    trellis: Tensor  # int16 [K/16, N/16, 16 * b]
    suh: Tensor  # fp16 [K]
    svh: Tensor  # fp16 [N]
    codebook: Codebook

    def named(self, prefix: str) -> Mapping[str, Tensor]:
        """The stored tensors by name, the codebook's marker (int32, the multiplier's bits) among them if it has one."""
        named = {f"{prefix}.trellis": self.trellis, f"{prefix}.suh": self.suh, f"{prefix}.svh": self.svh}
        if self.codebook in MULTIPLIERS:
            marker = torch.tensor(MULTIPLIERS[self.codebook]).to(torch.uint32).view(torch.int32)
            named[f"{prefix}.{self.codebook.value}"] = marker
        return named


def collect(tensors: Mapping[str, Tensor]) -> dict[str, Exl3Tensors]:
    """Every quantized matrix among stored tensors, by prefix: the inverse of named. KeyError names a missing scale."""

    def marker(name: str) -> int | None:
        return int(tensors[name]) if name in tensors else None

    prefixes = [name.removesuffix(".trellis") for name in tensors if name.endswith(".trellis")]
    return {
        prefix: Exl3Tensors(
            tensors[f"{prefix}.trellis"],
            tensors[f"{prefix}.suh"],
            tensors[f"{prefix}.svh"],
            codebook_from_markers(marker(f"{prefix}.mcg"), marker(f"{prefix}.mul1")),
        )
        for prefix in prefixes
    }
