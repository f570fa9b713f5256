"""One step: forward, backward, average, update. On a GPU it is captured as two CUDA graphs."""

from collections.abc import Callable

import torch
from torch import Tensor

from twinspark_demo.training.capture import GraphCapture
from twinspark_demo.training.cluster import Cluster
from twinspark_demo.training.optimizer import FlatAdamW
from twinspark_demo.training.step import CAPTURE_TOLERANCE
from twinspark_demo.training.vision.batch import VisionBatch
from twinspark_demo.training.vision.model import VisionLosses, VisionModel

THINGS_WEIGHT, ANSWERS_WEIGHT = 0.5, 0.5
SUMS = ("answer loss", "things", "heads", "tokens", "cells", "number", "colour", "count")
"""What is added up: three losses, then shares that were right: answer tokens, and what the heads say."""


class VisionStep:
    """Called from one thread; nothing waits for the device but prepare, read_sums and judge."""

    def __init__(self, model: VisionModel, optimizer: FlatAdamW, batch: VisionBatch, cluster: Cluster) -> None:
        self._model, self._optimizer, self._batch, self._cluster = model, optimizer, batch, cluster
        self._sums = torch.zeros(len(SUMS), device=cluster.device)
        self._correct = torch.zeros_like(batch.text.tokens, dtype=torch.bool)
        self._run: Callable[[], object] = self._accumulate
        self._apply: Callable[[], object] = optimizer.update

    def prepare(self) -> None:
        """Captures the step; batch holds real rows. Raises CaptureDiffersError unless a replay has the eager loss."""
        if self._cluster.device.type != "cuda":
            return
        graphs = GraphCapture()
        self._run = graphs.capture_checked(self._accumulate, self._loss_of, CAPTURE_TOLERANCE)
        self._optimizer.hold()
        self._apply = graphs.capture(self._optimizer.update)

    def run(self, rate: float) -> None:
        """One step on what the batch holds now."""
        self._optimizer.set_rates(rate, rate)
        self._run()
        self._cluster.average((self._optimizer.gradients,))
        self._apply()

    def judge(self) -> Tensor:
        """bool [B, T] on the CPU: the batch's tokens that the model says. Nothing is learned."""
        kept = self._sums.clone()
        self._run()
        self._sums.copy_(kept)
        return self._correct.cpu()

    def read_sums(self) -> list[float]:
        """Sums over the steps since the last call, in the order of SUMS."""
        sums = [float(value) for value in self._sums.tolist()]
        self._sums.zero_()
        return sums

    def _loss_of(self, run: Callable[[], object]) -> float:
        self._sums.zero_()
        run()
        return self.read_sums()[0]

    def _accumulate(self) -> None:
        self._optimizer.zero()
        losses: VisionLosses = self._model(self._batch)
        heads = losses.heads
        (losses.main + THINGS_WEIGHT * heads.things + ANSWERS_WEIGHT * heads.answers).backward()
        with torch.no_grad():
            self._correct.copy_(losses.correct)
            answer = self._batch.text.weights > 0
            tokens = (losses.correct & answer).sum() / answer.sum().clamp(min=1)
            shares = (heads.things_right, heads.number_right, heads.colour_right, heads.count_right)
            self._sums += torch.stack((losses.main, heads.things, heads.answers, tokens, *shares)).detach()
