"""`torchrun --nproc-per-node GPUS -m twinspark_demo.drafter.training --out FOLDER`, or without torchrun on one GPU."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer

from twinspark_demo.checkpoint.shards import Place
from twinspark_demo.drafter.config import DEMO
from twinspark_demo.drafter.model import Drafter
from twinspark_demo.drafter.target import Target
from twinspark_demo.drafter.training.plan import BlockPlan
from twinspark_demo.drafter.training.run import STAGE, DrafterRun, RunOptions, load_place
from twinspark_demo.training.cluster import join_cluster
from twinspark_demo.training.served_folder import load_folder
from twinspark_engine.model.checkpoint_error import CheckpointError
from twinspark_engine.model.weights import masked_token_ids

COMMITTED_MODEL = Path(__file__).resolve().parents[4] / "checkpoint"
SPARE_CORES = 1  # of each process that trains
STEPS = 12_000
SIZES = ("short_rows", "long_rows", "blocks")


def main(
    out: Annotated[Path, typer.Option(help="Folder that the shards are written to.")],
    model: Annotated[Path, typer.Option(help="The served folder of the target.")] = COMMITTED_MODEL,
    resume: Annotated[Path | None, typer.Option(help="Folder of shards to go on from.")] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps of the whole plan.")] = STEPS,
    seed: Annotated[int, typer.Option(help="Another seed, other weights and documents.")] = 0,
    report_every: Annotated[int, typer.Option(min=1, help="Steps between two reports.")] = 100,
    save_every: Annotated[int, typer.Option(min=1, help="Steps between two sets of shards.")] = 1000,
    size: Annotated[list[str], typer.Option(help="NAME=N: rows or blocks of a step, see plan.py.")] = [],  # noqa: B006
) -> None:
    """Train a drafter on the served model, which stays as it is."""
    plan = planned(steps, size)
    if resume is not None and seed:
        raise typer.BadParameter("--resume goes on with the run's own seed")
    cluster = join_cluster()
    torch.set_float32_matmul_precision("high")
    drafter, place = Drafter(DEMO, seed=seed), Place(STAGE, 0, seed)
    try:
        frozen = load_folder(model, compiled=cluster.device.type == "cuda").to(cluster.device)
        target = Target(frozen, masked_token_ids(model, frozen.config.vocab_size), DEMO)
        if resume is not None:
            place = load_place(resume, drafter)
    except (CheckpointError, OSError, KeyError, ValueError) as error:
        sys.exit(f"{resume or model}: {error}")
    torch.manual_seed(place.seed * 1000 + place.step * 10 + cluster.rank)  # of the places where blocks begin
    workers = max((os.cpu_count() or 1) // cluster.world_size - SPARE_CORES, 0)
    options = RunOptions(out, model / "tokenizer.json", workers, report_every, save_every)
    DrafterRun(drafter.to(cluster.device), target, place, cluster, options).run(plan)
    cluster.leave()


def planned(steps: int, sizes: list[str]) -> BlockPlan:
    """The plan with other sizes; raises BadParameter for what names none."""
    plan = BlockPlan(steps)
    for size in sizes:
        name, _, number = size.partition("=")
        if name not in SIZES or not number.isdecimal() or (name != "long_rows" and not int(number)):
            raise typer.BadParameter(
                f"{size}: NAME=N is needed, NAME one of {', '.join(SIZES)}; only long_rows can be 0"
            )
        plan = replace(plan, **{name: int(number)})
    return plan


if __name__ == "__main__":
    typer.run(main)
