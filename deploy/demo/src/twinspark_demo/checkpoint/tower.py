"""`python -m twinspark_demo.checkpoint.tower SHARDS FOLDER`: adds a trained vision tower to a served folder.

The folder's other tensors keep their bits, and their files' bytes: the tower gets a shard of its own.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import torch
import typer
from safetensors.torch import load_file
from torch import Tensor

from twinspark_demo.checkpoint.listing import print_files
from twinspark_demo.checkpoint.shards import load_shards
from twinspark_demo.vision import DEMO_VISION, VisionShape
from twinspark_demo.vision.parameters import tower_shapes
from twinspark_demo.vision.processor import PROCESSOR_NAME, processor_json
from twinspark_engine.model.checkpoint_error import CheckpointError
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.weights.headers import checkpoint_files
from twinspark_engine.model.weights.names import VISION_PREFIX
from twinspark_engine.model.weights.plan import build_plan
from twinspark_tools.tiny_checkpoint.folder import write_json, write_shards

CONFIG_NAME = "config.json"
SECTION = "vision_config"


def main(
    shards: Annotated[Path, typer.Argument(help="Folder of the shards of a run of twinspark_demo.training.vision.")],
    folder: Annotated[Path, typer.Argument(help="Served folder that gets the tower.")],
) -> None:
    """Add the tower, or put it in the place of an earlier one."""
    try:
        tensors, place = load_shards(shards)
        add_tower(folder, tensors, DEMO_VISION)
    except (CheckpointError, OSError, KeyError, ValueError) as error:
        sys.exit(f"{shards}, {folder}: {error}")
    print_files(folder)
    print(f"tower of stage {place.stage}, step {place.step}, seed {place.seed}")


def add_tower(folder: Path, tensors: Mapping[str, Tensor], shape: VisionShape) -> None:
    """Writes the tower's tensors (bf16), its part of config.json and preprocessor_config.json.

    tensors: by published name; others than the tower's are left out. Raises KeyError or ValueError where a tensor is
    missing or has another shape, or rows do not fit the language model, CheckpointError where the engine would refuse
    the folder.
    """
    tower = {VISION_PREFIX + name: tensors[VISION_PREFIX + name] for name in tower_shapes(shape)}
    for name, size in tower_shapes(shape).items():
        if tower[VISION_PREFIX + name].shape != torch.Size(size):
            raise ValueError(f"{name} has shape {list(tower[VISION_PREFIX + name].shape)}, the tower {list(size)}")
    width = ModelConfig.from_folder(folder).hidden_size
    if shape.out_hidden_size != width:
        raise ValueError(f"the tower's rows have {shape.out_hidden_size} values, the language model's {width}")
    parts: list[Mapping[str, Tensor]] = [load_file(file) for file in checkpoint_files(folder)]
    parts = [part for part in parts if not all(name.startswith(VISION_PREFIX) for name in part)]
    write_shards(folder, [*parts, {name: tensor.bfloat16().contiguous() for name, tensor in tower.items()}])
    config = json.loads((folder / CONFIG_NAME).read_text(encoding="utf-8"))
    write_json(folder / CONFIG_NAME, with_vision(config, shape))
    write_json(folder / PROCESSOR_NAME, processor_json(shape))
    for file in folder.iterdir():
        file.chmod(0o644)
    build_plan(folder, ModelConfig.from_folder(folder), world_size=1)


def with_vision(config: Mapping[str, object], shape: VisionShape) -> dict[str, object]:
    """config.json with the tower's section at its end."""
    return {**{name: value for name, value in config.items() if name != SECTION}, SECTION: shape.config_json()}


if __name__ == "__main__":
    typer.run(main)
