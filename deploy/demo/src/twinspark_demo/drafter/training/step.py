"""One step of the drafter's training; on a GPU a CUDA graph for each feed, and one for the update."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from twinspark_demo.drafter.blocks import PackedRows
from twinspark_demo.drafter.labels import choose_anchors
from twinspark_demo.drafter.loss import draft_losses
from twinspark_demo.drafter.model import Drafter
from twinspark_demo.drafter.target import Target
from twinspark_demo.rows.dataset import RowTensors
from twinspark_demo.training.batches import BatchFiller, empty_batch
from twinspark_demo.training.capture import GraphCapture
from twinspark_demo.training.check import EVERY_ANSWER
from twinspark_demo.training.cluster import Cluster
from twinspark_demo.training.model import TrainingBatch
from twinspark_demo.training.optimizer import FlatAdamW

CAPTURE_TOLERANCE = 0.01  # relative; products in bfloat16, sums of gradients in another order


@dataclass
class BlockBatch:
    """Rows and where their blocks begin; buffers that keep their place."""

    rows: TrainingBatch  # weight 1 on what the assistant says, else 0
    anchors: Tensor  # int64 [B, A]
    filler: BatchFiller

    @classmethod
    def empty(cls, rows: int, row_tokens: int, blocks: int, device: torch.device) -> "BlockBatch":
        """Buffers without content."""
        anchors = torch.zeros(rows, blocks, dtype=torch.int64, device=device)
        return cls(empty_batch(rows, row_tokens, device), anchors, BatchFiller(EVERY_ANSWER, device))

    @property
    def packed(self) -> PackedRows:
        """The same rows."""
        return PackedRows(self.rows.tokens, self.rows.documents, self.rows.positions)

    @property
    def is_answer(self) -> Tensor:
        """bool [B, T]: what the assistant says."""
        return self.rows.weights > 0

    def fill(self, rows: RowTensors) -> None:
        """Fresh rows, and blocks somewhere in their replies; waits for nothing."""
        self.filler.fill(self.rows, rows)
        self.anchors.copy_(choose_anchors(self.is_answer, self.rows.documents, self.anchors.shape[1]))


class DrafterStep:
    """Called from one thread; nothing waits for the device but add and read_sums."""

    def __init__(self, drafter: Drafter, target: Target, optimizer: FlatAdamW, cluster: Cluster) -> None:
        self._drafter, self._target = drafter, target
        self._optimizer, self._cluster = optimizer, cluster
        self._sums = torch.zeros(4, device=cluster.device)  # over the steps since read: as DraftLosses
        self._feeds: dict[str, Callable[[], object]] = {}
        self._apply: Callable[[], object] | None = None
        self._graphs = GraphCapture()

    def add(self, name: str, batch: BlockBatch) -> None:
        """One feed more; batch holds real rows. Raises CaptureDiffersError unless a replay has an eager run's loss."""

        def accumulate() -> None:
            self._accumulate(batch)

        if self._cluster.device.type != "cuda":
            self._feeds[name] = accumulate
            return
        self._feeds[name] = self._graphs.capture_checked(accumulate, self._loss_of, CAPTURE_TOLERANCE)

    def run(self, name: str, rate: float) -> None:
        """One step on what the feed's batch holds now."""
        self._optimizer.set_rates(rate, 0.0)
        self._feeds[name]()
        self._cluster.average((self._optimizer.gradients,))
        self._apply = self._apply or self._captured_update()
        self._apply()

    def read_sums(self) -> list[float]:
        """Sums since the last call of: both losses, shares of all rows and of first drafts that are right."""
        sums = [float(value) for value in self._sums.tolist()]
        self._sums.zero_()
        return sums

    def _accumulate(self, batch: BlockBatch) -> None:
        self._optimizer.zero()
        reading = self._target.read(batch.rows)
        losses = draft_losses(self._drafter, self._target, reading, batch.packed, batch.is_answer, batch.anchors)
        (losses.unary + losses.selector).backward()
        with torch.no_grad():
            self._sums += torch.stack((losses.unary, losses.selector, losses.right, losses.first_right)).detach()

    def _captured_update(self) -> Callable[[], object]:
        """The update, captured after AdamW has made its state."""
        if self._cluster.device.type != "cuda":
            return self._optimizer.update
        self._optimizer.hold()
        return self._graphs.capture(self._optimizer.update)

    def _loss_of(self, run: Callable[[], object]) -> float:
        self._sums.zero_()
        run()
        return sum(self.read_sums()[:2])
