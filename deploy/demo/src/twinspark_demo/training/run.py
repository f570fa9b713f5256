"""A run of training: the stages of the plan in turn, from their start or from where a stopped run was."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from twinspark_demo.documents.mixture import MIXTURES
from twinspark_demo.rows.dataset import RowDataset, RowTensors, Stream
from twinspark_demo.training.batches import BatchFiller, empty_batch, iterate_batches
from twinspark_demo.training.check import CheckRows, check_abilities
from twinspark_demo.training.cluster import Cluster
from twinspark_demo.training.model import DemoModel, TrainingBatch
from twinspark_demo.training.optimizer import FlatAdamW
from twinspark_demo.training.progress import Progress
from twinspark_demo.training.quantize import quantize_and_freeze
from twinspark_demo.training.stages import Feed, Stage
from twinspark_demo.training.start import TOKENIZER_NAME
from twinspark_demo.training.state import RunState
from twinspark_demo.training.step import LossWeights, TrainingStep


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Files and processes of a run, and how often it reports and saves."""

    out: Path  # folder of the shards
    tokenizer: Path
    workers: int  # processes that make rows, for each process that trains
    report_every: int = 50
    save_every: int = 1000


class TrainingRun:
    """Runs stages on one model. Every process of the cluster calls the same methods in the same order."""

    def __init__(self, model: DemoModel, state: RunState, cluster: Cluster, options: RunOptions) -> None:
        self._model, self._state, self._cluster, self._options = model, state, cluster, options

    def run(self, stage: Stage) -> None:
        """The rest of one stage; ends with its shards saved."""
        tokens = sum(feed.row_tokens * feed.rows for feed in stage.feeds) // len(stage.feeds)
        progress = Progress(stage.name, tokens * self._cluster.world_size, self._cluster.is_first)
        if stage.quantized and self._state.experts is None:
            progress.say("encoding the experts")
            self._state = replace(self._state, experts=quantize_and_freeze(self._model, self._cluster))
        first = self._state.steps_done(stage)
        if first < stage.steps:
            self._train(stage, first, progress)
        self._save(stage.name, stage.steps)
        self._cluster.wait()

    def check(self, rows: CheckRows, *, sparse: bool) -> None:
        """The first process prints the table of abilities."""
        if self._cluster.is_first:
            progress = Progress("abilities", 1, speaks=True)
            progress.table(check_abilities(self._model, self._options.tokenizer, rows, sparse=sparse))
        self._cluster.wait()

    def _train(self, stage: Stage, first: int, progress: Progress) -> None:
        optimizer = FlatAdamW(dict(self._model.named_parameters()))
        weights = LossWeights(mtp=stage.mtp_weight, indexer=1.0, memory=stage.memory_weight)
        step = TrainingStep(self._model, optimizer, weights, self._cluster)
        feeds = [
            _RunningFeed(feed, self._rows(stage, index, first), stage, self._cluster)
            for index, feed in enumerate(stage.feeds)
        ]
        for running in feeds:
            running.fill()
            step.add(running.batch, running.feed.options)
        progress.say(f"from step {first} of {stage.steps}")
        progress.start(first)
        for done in range(first, stage.steps):
            index = done % len(feeds)
            feeds[index].fill()
            rate = stage.learning_rate(done, done - first)
            step.run(index, rate, stage.indexer_rate(done, done - first))
            if (done + 1) % self._options.report_every == 0:
                progress.report(done + 1, step.read_sums(), rate, float(optimizer.norm))
            if (done + 1) % self._options.save_every == 0:
                self._save(stage.name, done + 1)

    def _rows(self, stage: Stage, index: int, first_step: int) -> Iterator[RowTensors]:
        feed = stage.feeds[index]
        workers = self._options.workers // len(stage.feeds)
        stream = Stream(
            mixture=MIXTURES[feed.mixture],
            row_tokens=feed.row_tokens,
            rows=feed.rows,
            tokenizer_path=self._options.tokenizer,
            name=f"{stage.name} {index}",
            seed=self._state.place.seed,
            rank=self._cluster.rank,
            first_step=first_step,
        )
        return iterate_batches(RowDataset(stream), workers, self._cluster.device)

    def _save(self, stage: str, step: int) -> None:
        self._state = replace(self._state, place=replace(self._state.place, stage=stage, step=step))
        if self._cluster.is_first:
            self._state.save(self._options.out, self._model, {TOKENIZER_NAME: self._options.tokenizer})


class _RunningFeed:
    """One feed's buffers and where their rows come from."""

    def __init__(self, feed: Feed, rows: Iterator[RowTensors], stage: Stage, cluster: Cluster) -> None:
        self.feed = feed
        self.batch: TrainingBatch = empty_batch(feed.rows, feed.row_tokens, cluster.device)
        self._rows, self._filler = rows, BatchFiller(stage.class_weights(), cluster.device)

    def fill(self) -> None:
        """Fresh rows into the buffers."""
        self._filler.fill(self.batch, next(self._rows))
