"""One training step: forward, backward, average, update. On a GPU it is captured as CUDA graphs, one for each feed."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from twinspark_demo.training.capture import GraphCapture
from twinspark_demo.training.cluster import Cluster
from twinspark_demo.training.model import DemoModel, ForwardOptions, Losses, TrainingBatch
from twinspark_demo.training.optimizer import FlatAdamW
from twinspark_engine.model.weights.names import moe_layers

CAPTURE_TOLERANCE = 0.02  # relative; expert noise and the indexer's random rows differ from run to run


@dataclass(frozen=True, slots=True)
class LossWeights:
    """Factors of the losses beside the main one."""

    mtp: float
    indexer: float
    memory: float


class TrainingStep:
    """The step of one stage. Called from one thread; nothing waits for the device but add and read_sums.

    Feeds are batches whose buffers keep their place and are filled anew before each step.
    """

    def __init__(self, model: DemoModel, optimizer: FlatAdamW, weights: LossWeights, cluster: Cluster) -> None:
        self._model, self._optimizer = model, optimizer
        self._weights, self._cluster = weights, cluster
        device, config = cluster.device, model.config
        # Sums over the steps since read: the four losses, shares of right answer tokens and of right first drafts.
        self._sums = torch.zeros(6, device=device)
        routers = len(moe_layers(config, has_mtp=True))
        self._load = torch.zeros(routers, config.n_routed_experts, device=device)
        self._feeds: list[Callable[[], object]] = []
        self._apply: Callable[[], object] | None = None
        self._graphs = GraphCapture()

    def add(self, batch: TrainingBatch, options: ForwardOptions) -> None:
        """One feed more; batch holds real rows. Raises CaptureDiffersError unless a replay has an eager run's loss."""

        def accumulate() -> None:
            self._accumulate(batch, options)

        if self._cluster.device.type != "cuda":
            self._feeds.append(accumulate)
            return
        self._feeds.append(self._graphs.capture_checked(accumulate, self._loss_of, CAPTURE_TOLERANCE))

    def run(self, feed: int, rate: float, indexer_rate: float) -> None:
        """One step on what the feed's batch holds now."""
        self._optimizer.set_rates(rate, indexer_rate)
        self._feeds[feed]()
        self._cluster.average((self._optimizer.gradients, self._load))
        self._apply = self._apply or self._captured_update()
        self._apply()

    def read_sums(self) -> list[float]:
        """Sums since the last call of: the four losses, shares of right answer tokens and of right first drafts."""
        sums = [float(value) for value in self._sums.tolist()]
        self._sums.zero_()
        return sums

    def _captured_update(self) -> Callable[[], object]:
        """The update, captured after AdamW has made its state."""
        if self._cluster.device.type != "cuda":
            return self._update
        self._optimizer.hold()
        return self._graphs.capture(self._update)

    def _loss_of(self, run: Callable[[], object]) -> float:
        self._sums.zero_()
        run()
        return self.read_sums()[0]

    def _accumulate(self, batch: TrainingBatch, options: ForwardOptions) -> None:
        self._optimizer.zero()
        losses = self._model(batch, options)
        weights = self._weights
        total = losses.main + weights.mtp * torch.stack(losses.mtp).sum()
        total = total + weights.indexer * losses.indexer + weights.memory * losses.memory
        total.backward()
        with torch.no_grad():
            self._load.copy_(losses.router_load)
            means = (losses.main, losses.mtp[0], losses.indexer, losses.memory)
            self._sums += torch.stack((*means, *_shares(batch, losses))).detach()

    def _update(self) -> None:
        self._optimizer.update()
        self._model.balance(self._load)


def _shares(batch: TrainingBatch, losses: Losses) -> tuple[Tensor, Tensor]:
    """Of the answer tokens, which alone have weight 1: the share that was right, and that the first draft had right."""
    answer = batch.weights >= 1.0
    count = answer.sum().clamp(min=1)
    return (losses.correct & answer).sum() / count, (losses.mtp_correct & answer).sum() / count
