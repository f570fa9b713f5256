"""`python -m twinspark_demo.checkpoint SHARDS FOLDER`: turns the shards of a training run into the served folder."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from twinspark_demo.checkpoint.export import export
from twinspark_demo.checkpoint.listing import print_files
from twinspark_demo.checkpoint.shards import load_shards
from twinspark_demo.quantization import collect
from twinspark_engine.model.checkpoint_error import CheckpointError
from twinspark_tools.tiny_checkpoint.shapes import SHAPES

EXPERTS = ".mlp.experts."


def main(
    shards: Annotated[Path, typer.Argument(help="Folder of a training run's shards.")],
    folder: Annotated[Path, typer.Argument(help="Folder to write; made if it is not there.")],
) -> None:
    """Write the folder that is served: published names and files, quantized experts."""
    try:
        origin = write_served_folder(shards, folder)
    except (CheckpointError, OSError, KeyError, ValueError) as error:
        sys.exit(f"{shards}: {error}")
    print_files(folder)
    print(f"{sum(file.stat().st_size for file in folder.iterdir()) / 1e6:9.3f} MB  {folder}, from {origin}")


def write_served_folder(shards: Path, folder: Path) -> str:
    """Writes the folder and says how far the run of these shards was.

    Raises ValueError where routed experts are not quantized, CheckpointError where the engine would refuse the folder,
    OSError, KeyError or ValueError where the shards are not whole.
    """
    tensors, place = load_shards(shards)
    experts = collect(tensors)
    of_experts = {name for prefix, matrix in experts.items() for name in matrix.named(prefix)}
    parameters = {name: tensor for name, tensor in tensors.items() if name not in of_experts}
    origin = f"stage {place.stage}, step {place.step}, seed {place.seed}"
    _refuse_plain_experts(parameters, origin)
    export(folder, parameters, experts, SHAPES["demo"])
    return origin


def _refuse_plain_experts(parameters: Iterable[str], origin: str) -> None:
    plain = sorted(name for name in parameters if EXPERTS in name)
    if plain:
        raise ValueError(f"{len(plain)} expert matrices are not quantized ({origin}), the first is {plain[0]}")


if __name__ == "__main__":
    typer.run(main)
