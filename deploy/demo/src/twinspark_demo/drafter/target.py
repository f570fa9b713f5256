"""The frozen target, as a drafter in training sees it."""

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor

from twinspark_demo.drafter.config import DrafterConfig
from twinspark_demo.training.model import DemoModel, ForwardOptions, TrainingBatch
from twinspark_engine.model.weights.names import EMBED, HEAD

AS_SERVED = ForwardOptions(sparse=True)


@dataclass(frozen=True, slots=True)
class Reading:
    """One forward of the target over packed rows."""

    taps: Tensor  # [B, T, taps D]
    said: Tensor  # int64 [B, T]: the most likely token behind each row


class Target:
    """Reads rows, and lends its embedding and head. Its parameters never change."""

    def __init__(self, model: DemoModel, never_drawn: Collection[int], config: DrafterConfig) -> None:
        """never_drawn: ids that a server never says. ValueError if the drafter is for another model."""
        config.check_target(model.config)
        model.requires_grad_(False)
        self._model, self._layers = model, config.target_layer_ids
        self.embedding, self.head = model.get_parameter(EMBED), model.get_parameter(HEAD)
        self._never_drawn = torch.zeros(config.vocab_size, dtype=torch.bool, device=self.head.device)
        self._never_drawn[sorted(never_drawn)] = True

    @torch.no_grad()
    def read(self, batch: TrainingBatch) -> Reading:
        """One forward, attention as sparse as when served."""
        tapped = self._model.tapped(batch, AS_SERVED, self._layers)
        return Reading(tapped.taps, tapped.logits.masked_fill(self._never_drawn, -torch.inf).argmax(-1))
