"""Resume state: a training run's tensors in shards, and the place in its plan where it stopped."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from safetensors.torch import load_file
from torch import Tensor

from twinspark_demo.checkpoint.parts import as_stored, deal_out
from twinspark_engine.model.weights.headers import INDEX_NAME
from twinspark_tools.tiny_checkpoint.folder import write_json, write_shards

PLACE_NAME = "place.json"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run stopped."""

    stage: str
    step: int  # steps of the stage that are done
    seed: int


def save_shards(
    folder: Path, tensors: Mapping[str, Tensor], place: Place, beside: Mapping[str, Path] | None = None
) -> None:
    """Writes shards of at most 15 MB, their index, the place, and copies of the files `beside` by name.

    fp32 tensors are rounded as a checkpoint has them. All is written below `.new` and then moved file by file over an
    earlier state, whose other shards go last: at no moment is a shard missing that the index names.
    """
    fresh = folder / ".new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    write_shards(fresh, deal_out(as_stored(tensors)))
    write_json(fresh / PLACE_NAME, asdict(place))
    for name, file in (beside or {}).items():
        shutil.copyfile(file, fresh / name)
    written = sorted(fresh.iterdir(), key=lambda file: file.suffix != ".safetensors")  # the index after its shards
    for file in written:
        file.replace(folder / file.name)
    fresh.rmdir()
    for shard in folder.glob("model-*.safetensors"):
        if shard.name not in {file.name for file in written}:
            shard.unlink()


def load_shards(folder: Path) -> tuple[dict[str, Tensor], Place]:
    """Tensors as stored, on the CPU, and the place; FileNotFoundError or ValueError names what is missing."""
    if not (folder / INDEX_NAME).is_file():
        raise FileNotFoundError(f"{folder} holds no {INDEX_NAME}: no run has saved there")
    if not (folder / PLACE_NAME).is_file():
        raise FileNotFoundError(f"{folder} holds no {PLACE_NAME}: it is no folder of a training run's shards")
    weight_map: Mapping[str, str] = json.loads((folder / INDEX_NAME).read_text(encoding="utf-8"))["weight_map"]
    files = sorted(set(weight_map.values()))
    missing = [file for file in files if not (folder / file).exists()]
    if missing:
        raise FileNotFoundError(f"{folder} lacks {', '.join(missing)}")
    tensors = {name: tensor for file in files for name, tensor in load_file(folder / file).items()}
    if tensors.keys() != weight_map.keys():
        raise ValueError(
            f"{folder}: {INDEX_NAME} and its shards disagree on {sorted(tensors.keys() ^ weight_map.keys())}"
        )
    return tensors, Place(**json.loads((folder / PLACE_NAME).read_text(encoding="utf-8")))
