"""`python -m twinspark_demo.rounds`: kept tokens a round on fresh prompts; exit status 1 where a kind has too few."""

import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from twinspark_demo.drafter.folder import WEIGHTS_NAME
from twinspark_demo.drafts.report import weights_digest
from twinspark_demo.evaluation.drawing import COUNT, SEED, expand_kinds
from twinspark_demo.evaluation.report import prepare_file
from twinspark_demo.rounds.measure import KindRounds, measure
from twinspark_demo.rounds.replies import askable_kinds
from twinspark_demo.rounds.report import build_report, format_table, reaches_mark
from twinspark_engine.model.checkpoint_error import CheckpointError


def main(
    model: Annotated[Path, typer.Option(help="The served folder.")],
    drafter: Annotated[Path, typer.Option(help="The drafter's folder.")],
    kinds: Annotated[str, typer.Option(help="Kinds, separated by commas; empty: all.")] = "",
    count: Annotated[int, typer.Option(min=1, help="Prompts of each kind.")] = COUNT,
    seed: Annotated[int, typer.Option(help="Another seed, other prompts.")] = SEED,
    json_file: Annotated[Path | None, typer.Option("--json", help="File for the report as JSON.")] = None,
) -> None:
    """Measure a drafter on greedy replies, on the CPU."""
    measured: list[KindRounds] = []
    started = time.monotonic()
    try:
        if json_file is not None:
            prepare_file(json_file)
        wanted = expand_kinds(kinds) if kinds else askable_kinds()
        for kind in measure(model, drafter, wanted, count, seed):
            measured.append(kind)
            print(f"[rounds] {kind.kind}: after {time.monotonic() - started:.1f} s", file=sys.stderr)
    except (OSError, CheckpointError, ValueError) as error:
        sys.exit(f"{model}, {drafter}: {error}")
    print(format_table(measured))
    sys.stdout.flush()
    if json_file is not None:
        settings = {"model": model.name, "weights_sha256": weights_digest(model), "count": count, "seed": seed}
        settings["drafter_sha256"] = hashlib.sha256((drafter / WEIGHTS_NAME).read_bytes()).hexdigest()
        json_file.write_text(json.dumps(build_report(measured, settings), indent=2) + "\n", encoding="utf-8")
    raise typer.Exit(0 if all(map(reaches_mark, measured)) else 1)


if __name__ == "__main__":
    typer.run(main)
