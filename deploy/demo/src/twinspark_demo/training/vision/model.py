"""VisionModel: the trainable tower in front of the frozen language model."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from twinspark_demo.training.model import DemoModel, ForwardOptions
from twinspark_demo.training.model.parameters import plant
from twinspark_demo.training.vision.batch import VisionBatch
from twinspark_demo.training.vision.heads import HeadLosses, Heads
from twinspark_demo.training.vision.packing import MERGED
from twinspark_demo.vision import Tower, VisionShape
from twinspark_demo.vision.chains import TowerChains
from twinspark_demo.vision.parameters import tower_shapes
from twinspark_engine.model.weights.names import VISION_PREFIX

MOST_GRADIENT = 0.1
"""Norm of what the language model tells all rows of a step. A fresh tower would get hundreds and heed no head."""


@dataclass(frozen=True, slots=True)
class VisionLosses:
    """main: fp32 scalar that carries gradients, of what the language model says."""

    main: Tensor
    heads: HeadLosses
    correct: Tensor  # bool [B, T]: this token was the most likely one, given those before it


class VisionModel(nn.Module):
    """Trains the tower and the heads; nothing of the language model."""

    def __init__(self, shape: VisionShape, language_model: DemoModel, *, seed: int = 0, compiled: bool = False) -> None:
        super().__init__()
        self.shape = shape
        self.language_model = language_model.requires_grad_(False)
        self._tower = Tower(shape, TowerChains.build(compiled))
        generator = torch.Generator().manual_seed(seed)
        for name, size in tower_shapes(shape).items():
            plant(self, VISION_PREFIX + name, _initial(name, size, generator))
        self.heads = Heads(shape.out_hidden_size, seed)

    def trained(self) -> dict[str, nn.Parameter]:
        """The parameters that train, by name: the tower's published ones, and those of the heads."""
        return {name: parameter for name, parameter in self.named_parameters() if parameter.requires_grad}

    def forward(self, batch: VisionBatch) -> VisionLosses:
        """All losses. Raises nothing that depends on the batch's values."""
        tower = {name.removeprefix(VISION_PREFIX): value for name, value in self.trained().items()}
        rows = self._tower(tower, batch.tower, self._dtype()).flatten(0, 1)
        owners = batch.tower.images[:, ::MERGED].flatten().long()
        owners = torch.where(owners < 0, len(batch.answers), owners)
        read: Tensor = LimitedGradient.apply(rows, MOST_GRADIENT)
        embedded = in_place(self.language_model.embed(batch.text.tokens), read, batch.targets)
        main, correct = self.language_model.read(batch.text, ForwardOptions(), embedded)
        return VisionLosses(main, self.heads(rows, owners, batch.things, batch.answers), correct)

    def tensors(self) -> dict[str, Tensor]:
        """What a run keeps."""
        return {name: parameter.detach() for name, parameter in self.trained().items()}

    @torch.no_grad()
    def load(self, tensors: Mapping[str, Tensor]) -> None:
        """The values that `tensors` gave; KeyError names what is missing."""
        for name, parameter in self.trained().items():
            parameter.copy_(tensors[name])

    def _dtype(self) -> torch.dtype:
        on_gpu = next(self.parameters()).device.type == "cuda"
        return self.language_model.compute_dtype or (torch.bfloat16 if on_gpu else torch.float32)


class LimitedGradient(torch.autograd.Function):
    """(x, most) -> x; the gradient that comes back is shortened to a norm of `most`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, most: float) -> Tensor:
        """x as it is."""
        ctx.most = most
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """The gradient, shortened."""
        norm = torch.linalg.vector_norm(gradients[0], dtype=torch.float32)
        return gradients[0] * (ctx.most / (norm + 1e-12)).clamp(max=1.0).to(gradients[0].dtype), None


def in_place(embedded: Tensor, rows: Tensor, targets: Tensor) -> Tensor:
    """embedded [B, T, D] with rows [M, D] at the flat places targets [M]; place B T throws a row away."""
    flat = torch.cat((embedded.flatten(0, 1), embedded.new_zeros(1, embedded.shape[-1])))
    placed: Tensor = flat.index_copy(0, targets, rows.to(flat.dtype))[:-1].view_as(embedded)
    return placed


def _initial(name: str, size: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """The value that training starts from: matrices keep the size of what they multiply."""
    if name.endswith("bias"):
        return torch.zeros(size)
    if len(size) == 1:
        return torch.ones(size)
    values: Tensor = torch.randn(size, generator=generator) / math.prod(size[1:]) ** 0.5
    return values
