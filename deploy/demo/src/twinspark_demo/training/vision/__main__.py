"""`torchrun --nproc-per-node GPUS -m twinspark_demo.training.vision --out FOLDER`, or without torchrun on one GPU."""

import math
import os
import sys
from pathlib import Path
from typing import Annotated

import torch
import typer

from twinspark_demo.checkpoint.shards import load_shards
from twinspark_demo.training.cluster import join_cluster
from twinspark_demo.training.served_folder import load_folder
from twinspark_demo.training.vision.model import VisionModel
from twinspark_demo.training.vision.packing import BatchShape
from twinspark_demo.training.vision.run import STAGE, VisionOptions, VisionRun
from twinspark_demo.vision import DEMO_VISION
from twinspark_engine.model.checkpoint_error import CheckpointError

COMMITTED_MODEL = Path(__file__).parents[4] / "checkpoint"
SPARE_CORES = 1  # of each process that trains
_SEQUENCES_A_ROW, _PICTURES_A_ROW = 3, 12


def main(  # noqa: PLR0913 - a command line
    out: Annotated[Path, typer.Option(help="Folder that the shards are written to.")],
    model: Annotated[Path, typer.Option(help="The served folder whose language model reads.")] = COMMITTED_MODEL,
    resume: Annotated[Path | None, typer.Option(help="Folder of shards to go on from.")] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps of the whole run.")] = 10_000,
    minutes: Annotated[float, typer.Option(min=0, help="Of the steps; 0: as long as they take.")] = 0,
    rate: Annotated[float, typer.Option(min=0, help="Highest learning rate.")] = 1e-3,
    rows: Annotated[int, typer.Option(min=1, help="Rows of 1,024 tokens a step, of each process.")] = 24,
    workers: Annotated[int, typer.Option(min=0, help="Processes that draw, for each that trains.")] = 12,
    seed: Annotated[int, typer.Option(help="Another seed, other first weights and pictures.")] = 0,
    report_every: Annotated[int, typer.Option(min=1, help="Steps between two lines.")] = 100,
    save_every: Annotated[int, typer.Option(min=1, help="Steps between two sets of shards.")] = 1000,
) -> None:
    """Train the vision tower in front of the frozen language model."""
    cluster = join_cluster()
    on_gpu = cluster.device.type == "cuda"
    torch.set_float32_matmul_precision("high")
    first = 0
    try:
        reader = load_folder(model, compiled=on_gpu)
        trained = VisionModel(DEMO_VISION, reader, seed=seed, compiled=on_gpu)
        if resume is not None:
            tensors, place = load_shards(resume)
            if place.stage != STAGE:
                raise ValueError(f"these are shards of stage {place.stage}, not of {STAGE}")
            trained.load(tensors)
            first, seed = place.step, place.seed
    except (OSError, KeyError, ValueError, CheckpointError) as error:
        sys.exit(f"{resume or model}: {error}")
    trained.to(cluster.device)
    shape = BatchShape(rows, 1024, _SEQUENCES_A_ROW * rows, 256, _PICTURES_A_ROW * rows)
    most = max((os.cpu_count() or 1) // cluster.world_size - SPARE_CORES, 0)
    options = VisionOptions(
        out,
        model / "tokenizer.json",
        shape,
        min(workers, most),
        steps,
        60 * minutes if minutes else math.inf,
        (rate, rate / 100),
        report_every,
        save_every,
        seed=seed,
    )
    VisionRun(trained, cluster, options, first).run()
    cluster.leave()


if __name__ == "__main__":
    typer.run(main)
