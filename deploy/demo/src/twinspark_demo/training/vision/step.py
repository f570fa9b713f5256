"""One step: forward, backward, average, update. On a GPU it is captured as two CUDA graphs."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from twinspark_demo.training.cluster import Cluster
from twinspark_demo.training.optimizer import FlatAdamW
from twinspark_demo.training.step import CAPTURE_TOLERANCE, WARMUPS, CaptureDiffersError
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
        self._pool: Any = None

    def prepare(self) -> None:
        """Captures the step; batch holds real rows. Raises CaptureDiffersError unless a replay has the eager loss."""
        if self._cluster.device.type != "cuda":
            return
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARMUPS):
                eager = self._loss_of(self._accumulate)
        torch.cuda.current_stream().wait_stream(stream)
        self._run = self._capture(self._accumulate)
        captured = self._loss_of(self._run)
        if not abs(captured - eager) <= CAPTURE_TOLERANCE * abs(eager):
            raise CaptureDiffersError(f"the captured step has loss {captured}, the eager one {eager}")
        self._optimizer.hold()
        self._apply = self._capture(self._optimizer.update)

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

    def _capture(self, run: Callable[[], None]) -> Callable[[], object]:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            run()
        self._pool = self._pool or graph.pool()
        return graph.replay

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
