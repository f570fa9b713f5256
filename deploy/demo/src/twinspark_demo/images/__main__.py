"""`python -m twinspark_demo.images`: what a served folder reads in fresh pictures; exit status 1 if too little."""

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from twinspark_demo.images.prompts import KINDS
from twinspark_demo.images.reader import Reader
from twinspark_demo.images.report import format_failures, format_table, is_good_enough
from twinspark_demo.images.scoring import Outcome, score, score_control
from twinspark_engine.model.checkpoint_error import CheckpointError

CONTROL = "control"
COUNT, SEED = 50, 20261130


def main(
    model: Annotated[Path, typer.Option(help="The served folder.")],
    kinds: Annotated[str, typer.Option(help="Kinds, separated by commas.")] = ",".join((*KINDS, CONTROL)),
    count: Annotated[int, typer.Option(min=1, help="Prompts of each kind.")] = COUNT,
    seed: Annotated[int, typer.Option(help="Another seed, other prompts and pictures.")] = SEED,
) -> None:
    """Ask about pictures, with the tower and the engine's forward in this process."""
    chosen = [kind.strip() for kind in kinds.split(",")]
    unknown = [kind for kind in chosen if kind not in (*KINDS, CONTROL)]
    if unknown:
        raise typer.BadParameter(f"no kind {unknown[0]}: there are {', '.join((*KINDS, CONTROL))}")
    try:
        reader = Reader(model)
    except (OSError, KeyError, ValueError, CheckpointError) as error:
        sys.exit(f"{model}: {error}")
    started = time.monotonic()
    scores: dict[str, list[Outcome]] = {}
    for kind in chosen:
        scores[kind] = score_control(reader, count, seed) if kind == CONTROL else score(reader, kind, count, seed)
        print(f"[images] {kind}: after {time.monotonic() - started:.1f} s", file=sys.stderr)
    failures = format_failures(scores)
    if failures:
        print(failures)
    print(format_table(scores))
    raise typer.Exit(0 if is_good_enough(scores) else 1)


if __name__ == "__main__":
    typer.run(main)
