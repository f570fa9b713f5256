"""`python -m twinspark_demo.drafter SHARDS FOLDER`: turns the shards of a training run into the drafter's folder."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from twinspark_demo.checkpoint.listing import print_files
from twinspark_demo.checkpoint.shards import load_shards
from twinspark_demo.drafter.config import DEMO
from twinspark_demo.drafter.folder import export_drafter, load_drafter


def main(
    shards: Annotated[Path, typer.Argument(help="Folder of a training run's shards.")],
    folder: Annotated[Path, typer.Argument(help="Folder to write; made if it is not there.")],
) -> None:
    """Write the drafter's config.json and model.safetensors."""
    try:
        tensors, place = load_shards(shards)
        export_drafter(folder, tensors, DEMO)
        load_drafter(folder)
    except (OSError, KeyError, ValueError) as error:
        sys.exit(f"{shards}: {error}")
    print_files(folder)
    print(f"{len(tensors)} tensors, from stage {place.stage}, step {place.step}, seed {place.seed}")


if __name__ == "__main__":
    typer.run(main)
