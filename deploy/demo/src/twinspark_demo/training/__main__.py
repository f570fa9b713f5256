"""`torchrun --nproc-per-node GPUS -m twinspark_demo.training --out FOLDER`, or without torchrun on one GPU."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer

from twinspark_demo.rows.tokenizer import COMMITTED_TOKENIZER
from twinspark_demo.training.check import CheckRows
from twinspark_demo.training.cluster import join_cluster
from twinspark_demo.training.model import DemoModel
from twinspark_demo.training.run import RunOptions, TrainingRun
from twinspark_demo.training.stages import PLAN, Stage
from twinspark_demo.training.start import start_from
from twinspark_demo.training.state import NOWHERE, RunState, load_state
from twinspark_engine.model.config import ModelConfig
from twinspark_tools.tiny_checkpoint.shapes import SHAPES, config_json

SPARE_CORES = 1  # of each process that trains


def main(
    out: Annotated[Path, typer.Option(help="Folder that the shards are written to.")],
    resume: Annotated[Path | None, typer.Option(help="Folder of shards to go on from.")] = None,
    begin_with: Annotated[
        Path | None, typer.Option(help="Folder of shards whose weights the plan begins with.")
    ] = None,
    tokenizer: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="tokenizer.json.")] = COMMITTED_TOKENIZER,
    steps: Annotated[list[str], typer.Option(help="STAGE=N: another number of steps; 0 leaves a stage out.")] = [],  # noqa: B006
    seed: Annotated[int, typer.Option(help="Another seed, other weights and documents.")] = 0,
    report_every: Annotated[int, typer.Option(min=1, help="Steps between two lines.")] = 50,
    save_every: Annotated[int, typer.Option(min=1, help="Steps between two sets of shards.")] = 1000,
) -> None:
    """Train the demo model: dense short rows, long rows with the indexers, then quantized experts and recovery."""
    stages = [stage for stage in planned(steps) if stage.steps]
    if not stages:
        raise typer.BadParameter("--steps leaves no stage")
    if resume is not None and begin_with is not None:
        raise typer.BadParameter("--resume goes on with a run, --begin-with starts one: only one of them is possible")
    if resume is not None and seed:
        raise typer.BadParameter("--resume goes on with the run's own seed")
    cluster = join_cluster()
    torch.set_float32_matmul_precision("high")
    model = DemoModel(
        ModelConfig.from_json(config_json(SHAPES["demo"])), seed=seed, compiled=cluster.device.type == "cuda"
    )
    state = RunState(replace(NOWHERE, seed=seed))
    try:
        if resume is not None:
            state = load_state(resume, model)
        if begin_with is not None:
            start_from(begin_with, model, tokenizer)
        rest = state.rest_of(stages)
    except (OSError, KeyError, ValueError) as error:
        sys.exit(f"{resume or begin_with}: {error}")
    model.to(cluster.device)
    workers = max((os.cpu_count() or 1) // cluster.world_size - SPARE_CORES, 0)
    options = RunOptions(out, tokenizer, workers, report_every, save_every)
    run = TrainingRun(model, state, cluster, options)
    for stage in rest:
        run.run(stage)
    run.check(CheckRows(), sparse=stages[-1].quantized)
    cluster.leave()


def planned(overrides: list[str]) -> list[Stage]:
    """The plan with other numbers of steps; raises BadParameter for what names no stage."""
    stages = {stage.name: stage for stage in PLAN}
    for override in overrides:
        name, _, number = override.partition("=")
        if name not in stages or not number.isdecimal():
            raise typer.BadParameter(f"{override}: NAME=STEPS is needed, NAME one of {', '.join(stages)}")
        stages[name] = replace(stages[name], steps=int(number))
    return list(stages.values())


if __name__ == "__main__":
    typer.run(main)
