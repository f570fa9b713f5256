"""`python -m twinspark_demo.drafts`: MTP drafts accepted on fresh prompts; exit status 1 if they are too few."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from twinspark_demo.drafts.measure import KindDrafts, measure
from twinspark_demo.drafts.report import JUDGED_KINDS, build_report, format_table, is_good_enough, weights_digest
from twinspark_demo.drafts.template import FILE
from twinspark_demo.evaluation.drawing import COUNT, SEED, expand_kinds
from twinspark_demo.evaluation.report import prepare_file
from twinspark_engine.model.checkpoint_error import CheckpointError

NEEDED_FILES = ("config.json", FILE, "tokenizer.json")


def main(
    model: Annotated[Path, typer.Option(help="The served folder.")],
    kinds: Annotated[str, typer.Option(help="Kinds with one right reply, separated by commas.")] = ",".join(
        JUDGED_KINDS
    ),
    count: Annotated[int, typer.Option(min=1, help="Prompts of each kind.")] = COUNT,
    seed: Annotated[int, typer.Option(help="Another seed, other prompts.")] = SEED,
    json_file: Annotated[Path | None, typer.Option("--json", help="File for the report as JSON.")] = None,
) -> None:
    """Measure the MTP layer's drafts in right replies, on the CPU."""
    measured: list[KindDrafts] = []
    started = time.monotonic()
    try:
        _refuse_other_folder(model)
        if json_file is not None:
            prepare_file(json_file)
        for kind in measure(model, expand_kinds(kinds), count, seed):
            measured.append(kind)
            print(f"[drafts] {kind.kind}: after {time.monotonic() - started:.1f} s", file=sys.stderr)
    except (OSError, CheckpointError, ValueError) as error:
        sys.exit(f"{model}: {error}")
    print(format_table(measured))
    sys.stdout.flush()
    if json_file is not None:
        settings = {"model": model.name, "weights_sha256": weights_digest(model), "count": count, "seed": seed}
        json_file.write_text(json.dumps(build_report(measured, settings), indent=2) + "\n", encoding="utf-8")
    raise typer.Exit(0 if is_good_enough(measured) else 1)


def _refuse_other_folder(folder: Path) -> None:
    missing = [name for name in NEEDED_FILES if not (folder / name).is_file()]
    if missing:
        raise ValueError(f"it lacks {', '.join(missing)}: give --model a folder that is served")


if __name__ == "__main__":
    typer.run(main)
