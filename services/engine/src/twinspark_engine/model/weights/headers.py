"""What the safetensors headers of a folder say: every stored tensor with its file, dtype and shape. Reads no data."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason
from twinspark_engine.model.config_fields import read_json

INDEX_NAME = "model.safetensors.index.json"
SINGLE_NAME = "model.safetensors"
ITEM_BYTES = {"F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1}
_MAX_HEADER_BYTES = 100_000_000  # the format's own limit


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor as it lies in a file; dtype in safetensors' spelling (BF16, F8_E4M3, ...)."""

    name: str
    file: Path
    dtype: str
    shape: tuple[int, ...]


def checkpoint_files(folder: Path) -> tuple[Path, ...]:
    """The files of a folder: those of the index, else the single one, else all; FILE_UNREADABLE if there is none."""
    if (folder / INDEX_NAME).exists():
        names = sorted(set(_weight_map(folder).values()))
    elif (folder / SINGLE_NAME).exists():
        names = [SINGLE_NAME]
    else:
        names = sorted(path.name for path in folder.glob("*.safetensors"))
    if not names:
        _refuse(folder, "no safetensors file is there")
    return tuple(folder / name for name in names)


def read_stored_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Every tensor of the folder by name; refuses a truncated file, a name stored twice, an index that is wrong."""
    tensors: dict[str, StoredTensor] = {}
    for file in checkpoint_files(folder):
        for name, tensor in _tensors_of(file).items():
            if name in tensors:
                message = f"{name} is stored twice: in {tensors[name].file.name} and {file.name}"
                raise CheckpointError(CheckpointReason.TENSOR_UNEXPECTED, message)
            tensors[name] = tensor
    if (folder / INDEX_NAME).exists():
        for name, file_name in _weight_map(folder).items():
            if name not in tensors or tensors[name].file.name != file_name:
                message = f"{name} is not in {file_name}, where {INDEX_NAME} says it is"
                raise CheckpointError(CheckpointReason.TENSOR_MISSING, message)
    return tensors


def read_header(file: Path) -> bytes:
    """The JSON header of one file, as bytes; FILE_UNREADABLE if the file is too short for it."""
    try:
        with file.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            if not 2 <= length <= _MAX_HEADER_BYTES:
                _refuse(file, f"its header says {length} bytes")
            header = stream.read(length)
    except OSError as error:
        _refuse(file, f"cannot be read: {error.strerror}")
    if len(header) < length:
        _refuse(file, f"truncated: the header has {len(header)} of {length} bytes")
    return header


def _weight_map(folder: Path) -> Mapping[str, str]:
    weight_map = read_json(folder / INDEX_NAME).get("weight_map")
    if not isinstance(weight_map, dict) or not all(_is_plain_name(file) for file in weight_map.values()):
        message = f"{INDEX_NAME}: weight_map must map names to files of this folder"
        raise CheckpointError(CheckpointReason.CONFIG_UNREADABLE, message)
    return weight_map


def _is_plain_name(file: object) -> bool:
    return isinstance(file, str) and file.endswith(".safetensors") and Path(file).name == file


def _tensors_of(file: Path) -> dict[str, StoredTensor]:
    header = read_header(file)
    try:
        entries = json.loads(header)
        entries.pop("__metadata__", None)
        tensors = {name: _stored(name, file, entry) for name, entry in entries.items()}
        data_bytes = max((entry["data_offsets"][1] for entry in entries.values()), default=0)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        _refuse(file, f"its header is malformed: {error}")
    missing = 8 + len(header) + data_bytes - file.stat().st_size
    if missing > 0:
        _refuse(file, f"truncated: {missing} bytes are missing at its end")
    if missing < 0:
        _refuse(file, f"{-missing} bytes follow what its header describes")
    return tensors


def _stored(name: str, file: Path, entry: Mapping[str, object]) -> StoredTensor:
    """One header entry; ValueError if its bytes are not those of its dtype and shape."""
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or not isinstance(shape, list) or not isinstance(offsets, list):
        raise ValueError(f"{name} lacks dtype, shape or data_offsets")
    item_bytes = ITEM_BYTES.get(dtype)
    if item_bytes is not None and offsets[1] - offsets[0] != math.prod(shape) * item_bytes:
        raise ValueError(f"{name} has {offsets[1] - offsets[0]} bytes, not those of {dtype} {shape}")
    return StoredTensor(name, file, dtype, tuple(int(size) for size in shape))


def _refuse(path: Path, message: str) -> NoReturn:
    raise CheckpointError(CheckpointReason.FILE_UNREADABLE, f"{path.name}: {message}")
