"""`python -m twinspark_tools.bench.step MODEL`: where the time of one rank's decode step goes, by op, as JSON.

Runs rank 0's part of the forward in this process, with an exchange that answers at once: what is left of a step of a
running server is the exchange, the draw, the plan and the gateway.
"""

import cProfile
import json
import pstats
import time
from pathlib import Path
from typing import Annotated, Any

import torch
import typer

from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.model import Model
from twinspark_engine.model.rows import Rows
from twinspark_engine.model.state import ModelState
from twinspark_engine.model.weights import load_weights
from twinspark_kernels.row_class import RowClass
from twinspark_tools.bench.machine import describe_machine, describe_versions, find_commit

OPS = "twinspark_kernels"


class EchoTransport:
    """Every rank's part is this rank's own: right in shape and cost, wrong in value."""

    rank = 0

    def __init__(self, world_size: int) -> None:
        self.world_size = world_size

    def gather(self, x: torch.Tensor) -> torch.Tensor:
        """[world_size, *x.shape]."""
        return x.expand(self.world_size, *x.shape)

    def check(self) -> None:
        """Never raises."""


class DecodeSteps:
    """Slots with a prompt behind them, which decode the same id again and again."""

    def __init__(self, model: Path, world_size: int, num_streams: int, prompt_tokens: int, context: int) -> None:
        config = ModelConfig.from_folder(model)
        weights = load_weights(model, config, 0, world_size, torch.float32, lambda _done, _total: None)
        self._model = Model(config, weights, EchoTransport(world_size))
        self._state = ModelState.allocate(config, world_size, num_streams, context, torch.float32)
        self._position = prompt_tokens
        self._slots = torch.arange(num_streams)
        prompt = torch.arange(prompt_tokens) % config.vocab_size
        for slot in range(num_streams):
            self._model.forward(Rows.segment(RowClass.PROMPT, prompt, slot, 0), self._state)

    def run(self, num_steps: int) -> None:
        """Forward and logits of one row a slot, num_steps times."""
        for _ in range(num_steps):
            positions = torch.full_like(self._slots, self._position)
            rows = Rows(RowClass.DECODE, torch.zeros_like(self._slots), self._slots, positions)
            self._model.logits(self._model.forward(rows, self._state), RowClass.DECODE)
            self._position += 1


def main(
    model: Annotated[Path, typer.Argument(help="Checkpoint folder.")],
    ranks: Annotated[int, typer.Option(min=1, help="Ranks that the checkpoint is split over.")] = 2,
    streams: Annotated[int, typer.Option(min=1, max=16, help="Slots, all of which decode.")] = 1,
    prompt_tokens: Annotated[int, typer.Option(min=1, help="Positions before the first measured step.")] = 200,
    steps: Annotated[int, typer.Option(min=1, help="Measured steps.")] = 100,
) -> None:
    """Measure, then profile, which costs time itself: read its figures as shares."""
    torch.set_num_threads(1)
    with torch.inference_mode():
        decode = DecodeSteps(model, ranks, streams, prompt_tokens, prompt_tokens + 3 * steps)
        decode.run(steps)
        started = time.process_time()
        decode.run(steps)
        step_ms = (time.process_time() - started) * 1000 / steps
        profile = cProfile.Profile()
        profile.runcall(decode.run, steps)
    report = {
        "commit": find_commit(),
        "machine": describe_machine(),
        "versions": describe_versions(),
        "streams": streams,
        "cpu_ms_a_step": round(step_ms, 2),
        "ops": shares_of_ops(pstats.Stats(profile)),
    }
    print(json.dumps(report, indent=2))


def shares_of_ops(stats: pstats.Stats) -> list[dict[str, Any]]:
    """Share of the profiled time by op folder, calls into torch included, largest first; the rest is the model's."""
    seconds: dict[str, float] = {}
    entries: dict[tuple[str, int, str], Any] = stats.stats  # type: ignore[attr-defined]
    for (file, _, _), (_, _, own_seconds, _, callers) in entries.items():
        if file == "~":  # a builtin: its time belongs to those who call it
            for (caller_file, _, _), (_, _, caller_seconds, _) in callers.items():
                op = name_op(caller_file)
                seconds[op] = seconds.get(op, 0.0) + caller_seconds
        else:
            op = name_op(file)
            seconds[op] = seconds.get(op, 0.0) + own_seconds
    total = sum(seconds.values())
    return [{"op": op, "share": round(part / total, 3)} for op, part in sorted(seconds.items(), key=lambda e: -e[1])]


def name_op(file: str) -> str:
    """Folder (or file) of an op under the kernels package; `model` for everything else."""
    parts = Path(file).parts
    return Path(parts[parts.index(OPS) + 1]).stem if OPS in parts else "model"


if __name__ == "__main__":
    typer.run(main)
