"""A run: steps at a rate that falls along a half cosine, reports, shards."""

import math
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from twinspark_demo.checkpoint.shards import Place, save_shards
from twinspark_demo.training.batches import iterate_batches
from twinspark_demo.training.cluster import Cluster
from twinspark_demo.training.optimizer import FlatAdamW
from twinspark_demo.training.vision.batch import VisionBatch
from twinspark_demo.training.vision.check import HeldOut, Reading
from twinspark_demo.training.vision.dataset import PictureDataset, PictureStream
from twinspark_demo.training.vision.model import VisionModel
from twinspark_demo.training.vision.packing import BatchShape, VisionTensors
from twinspark_demo.training.vision.step import SUMS, VisionStep

STAGE = "vision"
WARMUP_STEPS = 200
_SHARED_MEMORY = Path("/dev/shm")
_MEASURED_FROM, _MEASURED_TO = 20, 120  # steps whose speed says how many fit in the time
_PREFETCH = 2


@dataclass(frozen=True, slots=True)
class VisionOptions:
    """Files, sizes and lengths of a run."""

    out: Path
    tokenizer: Path
    shape: BatchShape
    workers: int  # processes that draw, for each process that trains
    steps: int
    seconds: float = math.inf  # of the steps; fewer than `steps` are made if they would take longer
    rates: tuple[float, float] = (1e-3, 1e-5)
    report_every: int = 100
    save_every: int = 1000
    final_batches: int = 4  # of each kind, for the last table
    seed: int = 0


class VisionRun:
    """Trains one model. Every process of the cluster calls the same methods in the same order."""

    def __init__(self, model: VisionModel, cluster: Cluster, options: VisionOptions, first_step: int = 0) -> None:
        self._model, self._cluster, self._options, self._first = model, cluster, options, first_step
        self._steps = options.steps
        self._batch = VisionBatch.empty(options.shape, cluster.device)
        self._optimizer = FlatAdamW(model.trained())
        self._step = VisionStep(model, self._optimizer, self._batch, cluster)

    def run(self) -> None:
        """All steps that are left; ends with the shards saved and the table of what it reads."""
        options = self._options
        rows = self._rows()
        held_out = HeldOut(options.shape, options.tokenizer, options.final_batches) if self._cluster.is_first else None
        self._batch.fill(next(rows))
        self._step.prepare()
        self._say(f"from step {self._first} of {self._steps}")
        started = reported = time.monotonic()
        self._step.read_sums()
        done = self._first
        while done < self._steps:
            self._batch.fill(next(rows))
            self._step.run(self._rate(done))
            done += 1
            made = done - self._first
            if made == _MEASURED_FROM:
                measured = self._now()
            if made == _MEASURED_TO:
                self._fit_into_time(done, (self._now() - measured) / (_MEASURED_TO - _MEASURED_FROM), started)
            if done % options.report_every == 0:
                self._report(done, reported, held_out)
                reported = time.monotonic()
            if done % options.save_every == 0 and done < self._steps:
                self._save(done)
        self._save(done)
        if held_out is not None:
            self._round()
            for reading in held_out.judge(self._step, self._batch, options.final_batches):
                self._say(f"  {reading.kind:<8} {reading.right:>4} of {reading.asked:<4} {100 * reading.share:.1f}")
        self._cluster.wait()

    def _rate(self, done: int) -> float:
        first, last = self._options.rates
        share = min(done / max(self._steps, 1), 1.0)
        rate = last + (first - last) * 0.5 * (1 + math.cos(math.pi * share))
        return rate * min((done - self._first + 1) / WARMUP_STEPS, 1.0)

    def _fit_into_time(self, done: int, seconds: float, started: float) -> None:
        """Fewer steps, the same for all processes, if all of them would take longer than they may."""
        left = self._options.seconds - (time.monotonic() - started)
        fitting = torch.tensor([min(done + max(left, 0.0) / seconds, self._steps)], device=self._cluster.device)
        self._cluster.broadcast((fitting,))
        self._steps = max(int(fitting), done + 1) if self._steps > done else self._steps
        self._say(f"{1000 * seconds:.1f} ms a step: {self._steps} steps")

    def _now(self) -> float:
        if self._cluster.device.type == "cuda":
            torch.cuda.synchronize()
        return time.monotonic()

    def _report(self, done: int, since: float, held_out: HeldOut | None) -> None:
        steps = self._options.report_every
        means = "  ".join(
            f"{name} {total / steps:.3f}" for name, total in zip(SUMS, self._step.read_sums(), strict=True)
        )
        pace = f"{1000 * (time.monotonic() - since) / steps:.0f} ms"
        readings: list[Reading] = [] if held_out is None else list(held_out.judge(self._step, self._batch, 1))
        read = " ".join(f"{reading.kind} {100 * reading.share:.0f}" for reading in readings)
        self._say(f"step {done}  {means}  norm {float(self._optimizer.norm):.2f}  {pace}  | held out: {read}")

    def _rows(self) -> Iterator[VisionTensors]:
        options = self._options
        stream = PictureStream(options.shape, options.tokenizer, options.seed, self._cluster.rank, self._first)
        workers = min(options.workers, self._workers_that_fit())
        self._say(f"{workers} processes draw for each that trains")
        return iterate_batches(PictureDataset(stream), workers, self._cluster.device, _PREFETCH)

    def _workers_that_fit(self) -> int:
        """Batches wait in shared memory: half of what is free, shared by all processes of this machine."""
        if not _SHARED_MEMORY.is_dir():
            return self._options.workers
        sizes = (self._batch.tower.values, self._batch.tower.places, self._batch.tower.images)
        batch = sum(tensor.nbytes for tensor in sizes)
        free = shutil.disk_usage(_SHARED_MEMORY).free / 2 / self._cluster.world_size
        return max(int(free / batch / (_PREFETCH + 1)), 1)

    def _save(self, done: int) -> None:
        if self._cluster.is_first:
            save_shards(self._options.out, self._model.tensors(), Place(STAGE, done, self._options.seed))

    def _round(self) -> None:
        """The parameters become what the shards hold, as they will be served."""
        self._model.load({name: value.bfloat16().float() for name, value in self._model.tensors().items()})

    def _say(self, text: str) -> None:
        if self._cluster.is_first:
            print(f"[{STAGE}] {text}", flush=True)
