"""The catalog: parameters by their published name, whichever of two spellings the folder uses.

Transformers' save_pretrained writes published names by default, and its own module names with
save_original_format=False: there experts are stacked, gate above up, and a layer's convolutions are one tensor.
"""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from twinspark_engine.model.checkpoint_error import CheckpointError, CheckpointReason
from twinspark_engine.model.weights.headers import ITEM_BYTES, StoredTensor

_RENAMES = (
    (re.compile(r"\.self_attn\.forget_gate\."), ".self_attn."),
    (re.compile(r"\.(attn|ffn)_hc\.(fn|base|scale)$"), r".hc_\1_\2"),
)
_STACKED_GATE_UP = ".mlp.experts.gate_up_proj"
_STACKED_DOWN = ".mlp.experts.down_proj"
_JOINT_CONV = ".self_attn.conv1d.weight"


@dataclass(frozen=True, slots=True)
class Entry:
    """One parameter: all of a stored tensor, or an entry of its first axis, or a range of rows of either."""

    stored: StoredTensor
    shape: tuple[int, ...]
    index: int | None = None
    row_offset: int = 0

    @property
    def num_bytes(self) -> int:
        """Bytes of the parameter in its file."""
        return math.prod(self.shape) * ITEM_BYTES.get(self.stored.dtype, 0)


def build_catalog(tensors: Iterable[StoredTensor]) -> dict[str, Entry]:
    """Published name to entry. TENSOR_UNEXPECTED if two tensors are the same parameter."""
    catalog: dict[str, Entry] = {}
    for tensor in tensors:
        for name, entry in _entries(tensor):
            if name in catalog:
                message = f"{catalog[name].stored.name} and {tensor.name} are the same parameter"
                raise CheckpointError(CheckpointReason.TENSOR_UNEXPECTED, message)
            catalog[name] = entry
    return catalog


def _entries(tensor: StoredTensor) -> Iterator[tuple[str, Entry]]:
    if tensor.name.endswith(_STACKED_GATE_UP):
        prefix, (_, rows, columns) = _stacked(tensor, _STACKED_GATE_UP, even_rows=True)
        for expert in range(tensor.shape[0]):
            half = (rows // 2, columns)
            yield f"{prefix}{expert}.gate_proj.weight", Entry(tensor, half, expert)
            yield f"{prefix}{expert}.up_proj.weight", Entry(tensor, half, expert, row_offset=rows // 2)
    elif tensor.name.endswith(_STACKED_DOWN):
        prefix, (_, rows, columns) = _stacked(tensor, _STACKED_DOWN)
        for expert in range(tensor.shape[0]):
            yield f"{prefix}{expert}.down_proj.weight", Entry(tensor, (rows, columns), expert)
    elif tensor.name.endswith(_JOINT_CONV):
        yield from _convolutions(tensor)
    else:
        name = tensor.name
        for pattern, replacement in _RENAMES:
            name = pattern.sub(replacement, name)
        yield name, Entry(tensor, tensor.shape)


def _stacked(tensor: StoredTensor, suffix: str, even_rows: bool = False) -> tuple[str, tuple[int, int, int]]:
    if len(tensor.shape) != 3 or (even_rows and tensor.shape[1] % 2):
        message = f"{tensor.name} has shape {list(tensor.shape)}: stacked experts are needed"
        raise CheckpointError(CheckpointReason.TENSOR_SHAPE, message)
    experts, rows, columns = tensor.shape
    return tensor.name.removesuffix(suffix) + ".mlp.experts.", (experts, rows, columns)


def _convolutions(tensor: StoredTensor) -> Iterator[tuple[str, Entry]]:
    if not tensor.shape or tensor.shape[0] % 3:
        message = f"{tensor.name} has shape {list(tensor.shape)}: three equal parts are needed"
        raise CheckpointError(CheckpointReason.TENSOR_SHAPE, message)
    rows = tensor.shape[0] // 3
    prefix = tensor.name.removesuffix("conv1d.weight")
    for place, part in enumerate("qkv"):
        yield f"{prefix}{part}_conv1d.weight", Entry(tensor, (rows, *tensor.shape[1:]), row_offset=place * rows)
