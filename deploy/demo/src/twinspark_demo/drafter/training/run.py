"""A run of the drafter's training, from its start or from where a stopped one was."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from twinspark_demo.checkpoint.shards import Place, load_shards, save_shards
from twinspark_demo.documents.mixture import MIXTURES
from twinspark_demo.drafter.folder import fill
from twinspark_demo.drafter.model import Drafter
from twinspark_demo.drafter.target import Target
from twinspark_demo.drafter.training.held_out import HeldOut
from twinspark_demo.drafter.training.plan import BlockFeed, BlockPlan
from twinspark_demo.drafter.training.step import BlockBatch, DrafterStep
from twinspark_demo.rows.dataset import RowDataset, RowTensors, Stream
from twinspark_demo.training.batches import iterate_batches
from twinspark_demo.training.cluster import Cluster
from twinspark_demo.training.optimizer import FlatAdamW

STAGE = "drafter"
COLUMNS = ("unary", "selector", "right", "first right")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Files and processes of a run, and how often it reports and saves."""

    out: Path  # folder of the shards
    tokenizer: Path
    workers: int  # processes that make rows, for each process that trains
    report_every: int = 100
    save_every: int = 1000


def load_place(folder: Path, drafter: Drafter) -> Place:
    """Fills the drafter from shards; FileNotFoundError or ValueError names what is missing."""
    tensors, place = load_shards(folder)
    if place.stage != STAGE:
        raise ValueError(f"its stage is {place.stage}: these are no shards of a drafter")
    fill(drafter, tensors)
    return place


class DrafterRun:
    """Trains one drafter. Every process of the cluster calls the same methods in the same order."""

    def __init__(self, drafter: Drafter, target: Target, place: Place, cluster: Cluster, options: RunOptions) -> None:
        self._drafter, self._target = drafter, target
        self._place, self._cluster, self._options = place, cluster, options

    def run(self, plan: BlockPlan) -> None:
        """The rest of the plan; ends with the shards saved."""
        first, feeds = self._place.step, plan.feeds()
        step = DrafterStep(
            self._drafter, self._target, FlatAdamW(dict(self._drafter.named_parameters())), self._cluster
        )
        batches = {
            name: BlockBatch.empty(f.rows, f.row_tokens, f.blocks, self._cluster.device) for name, f in feeds.items()
        }
        sources = {name: self._rows(name, feed, plan.share(name)) for name, feed in feeds.items()}
        for name, batch in batches.items():
            batch.fill(next(sources[name]))
            step.add(name, batch)
        held_out = self._held_out(list(feeds.values()))
        self._say(f"from step {first} of {plan.steps}")
        step.read_sums()
        started = time.monotonic()
        for done in range(first, plan.steps):
            name, rate = plan.turn(done), plan.rate(done, done - first)
            batches[name].fill(next(sources[name]))
            step.run(name, rate)
            if (done + 1 - first) % self._options.report_every == 0 or done + 1 == plan.steps:
                steps = (done - first) % self._options.report_every + 1
                self._report(done + 1, [value / steps for value in step.read_sums()], rate, started, steps, held_out)
                started = time.monotonic()
            if (done + 1) % self._options.save_every == 0 and done + 1 < plan.steps:
                self._save(done + 1)
        self._save(plan.steps)
        self._cluster.wait()

    def _held_out(self, feeds: Sequence[BlockFeed]) -> HeldOut | None:
        """Of the first process only: the others have nothing to say."""
        if not self._cluster.is_first:
            return None
        return HeldOut(self._target, self._options.tokenizer, feeds, self._cluster.device)

    def _report(
        self, done: int, means: Sequence[float], rate: float, started: float, steps: int, held_out: HeldOut | None
    ) -> None:
        seconds = (time.monotonic() - started) / steps
        values = "  ".join(f"{name} {value:.4f}" for name, value in zip(COLUMNS, means, strict=True))
        self._say(f"step {done}  {values}  rate {rate:.1e}  {seconds * 1000:.0f} ms")
        if held_out is not None:
            self._say("  kept " + "  ".join(f"{kept.kind} {kept.mean:.2f}" for kept in held_out.kept(self._drafter)))

    def _say(self, text: str) -> None:
        if self._cluster.is_first:
            print(f"[drafter] {text}", flush=True)

    def _rows(self, name: str, feed: BlockFeed, share: float) -> Iterator[RowTensors]:
        stream = Stream(
            mixture=MIXTURES[feed.mixture],
            row_tokens=feed.row_tokens,
            rows=feed.rows,
            tokenizer_path=self._options.tokenizer,
            name=f"{STAGE} {name}",
            seed=self._place.seed,
            rank=self._cluster.rank,
            first_step=self._place.step,
        )
        workers = math.ceil(self._options.workers * share)
        return iterate_batches(RowDataset(stream), workers, self._cluster.device)

    def _save(self, step: int) -> None:
        if self._cluster.is_first:
            tensors = {name: parameter.detach() for name, parameter in self._drafter.named_parameters()}
            save_shards(self._options.out, tensors, Place(STAGE, step, self._place.seed))
