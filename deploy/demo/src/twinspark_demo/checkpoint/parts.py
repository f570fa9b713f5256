"""In which dtype tensors are stored, and how they are dealt out to files of limited size."""

from collections.abc import Mapping

import torch
from torch import Tensor

from twinspark_tools.tiny_checkpoint.weights import stored_dtype

SHARD_BYTES = 15_000_000  # of a file at most
HEADER_BYTES = 500_000  # kept free for its header
_DATA_BYTES = SHARD_BYTES - HEADER_BYTES


def as_stored(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors on the CPU: fp32 ones in the dtype of their published name (bf16, a few fp32), others as they are."""
    stored: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        dtype = stored_dtype(name) if tensor.dtype == torch.float32 else tensor.dtype
        stored[name] = tensor.detach().to("cpu", dtype).contiguous()
    return stored


def deal_out(tensors: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
    """The tensors in order of their names, in parts that fit a shard; ValueError names one that fits none."""
    parts: list[dict[str, Tensor]] = [{}]
    held = 0
    for name in sorted(tensors):
        size = tensors[name].numel() * tensors[name].element_size()
        if size > _DATA_BYTES:
            raise ValueError(f"{name} has {size} bytes, a shard holds {_DATA_BYTES}")
        if held + size > _DATA_BYTES:
            parts.append({})
            held = 0
        parts[-1][name] = tensors[name]
        held += size
    return parts
