"""Exl3Weight: one EXL3 linear, decoded once at load."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class Exl3Weight:
    """The inner weight and its two scale vectors; K in_features and N out_features are multiples of 128.

    inner holds exact fp16 values, in fp32 on a CPU so that no product converts it again.
    """

    inner: torch.Tensor  # [K, N] fp32 or fp16
    suh: torch.Tensor  # [K] fp16
    svh: torch.Tensor  # [N] fp16
