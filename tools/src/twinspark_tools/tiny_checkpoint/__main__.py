"""`python -m twinspark_tools.tiny_checkpoint OUT`: writes a random checkpoint folder."""

from pathlib import Path
from typing import Annotated

import typer

from twinspark_tools.tiny_checkpoint.folder import write_checkpoint
from twinspark_tools.tiny_checkpoint.shapes import SHAPES


def main(
    out: Annotated[Path, typer.Argument(help="Folder to write; made if it is not there.")],
    seed: Annotated[int, typer.Option(help="Another seed, other weights.")] = 0,
    shape: Annotated[str, typer.Option(help=f"One of: {', '.join(SHAPES)}.")] = "tiny",
) -> None:
    """Write a checkpoint folder with random weights, a tokenizer and a chat template."""
    if shape not in SHAPES:
        raise typer.BadParameter(f"unknown shape {shape}: one of {', '.join(SHAPES)} is needed")
    write_checkpoint(out, SHAPES[shape], seed)
    size = sum(path.stat().st_size for path in out.iterdir())
    typer.echo(f"{out}: {shape} checkpoint, seed {seed}, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    typer.run(main)
