"""Buffers of the exchange, one a shape and dtype, kept between gathers so that their addresses do not change."""

from collections import OrderedDict
from dataclasses import dataclass

import torch
from torch import Tensor

MAX_BUFFER_BYTES = 512 * 1024 * 1024
"""Beyond this the buffers used least recently are given up; a result that is still held stays valid."""


@dataclass(frozen=True, slots=True)
class ExchangeBuffer:
    """One gather's memory: all parts, and each rank's part as a view."""

    gathered: Tensor  # [world_size, *shape]
    parts: tuple[Tensor, ...]  # world_size views of gathered, by rank
    raw: tuple[memoryview, ...]  # the bytes of each part


class ExchangeBuffers:
    """Used by the transport's thread only."""

    def __init__(self, world_size: int) -> None:
        self._world_size = world_size
        self._buffers: OrderedDict[tuple[torch.Size, torch.dtype], ExchangeBuffer] = OrderedDict()
        self._num_bytes = 0

    def get(self, x: Tensor) -> ExchangeBuffer:
        """The buffer for tensors like x."""
        key = (x.shape, x.dtype)
        buffer = self._buffers.get(key)
        if buffer is None:
            buffer = self._allocate(x)
            self._buffers[key] = buffer
            self._num_bytes += buffer.gathered.nbytes
            self._give_up_oldest()
        else:
            self._buffers.move_to_end(key)
        return buffer

    @property
    def num_bytes(self) -> int:
        """Bytes held."""
        return self._num_bytes

    def _allocate(self, x: Tensor) -> ExchangeBuffer:
        gathered = torch.empty((self._world_size, *x.shape), dtype=x.dtype)
        parts = tuple(gathered.unbind(0))
        raw = tuple(part.reshape(-1).view(torch.uint8).numpy().data for part in parts)
        return ExchangeBuffer(gathered, parts, raw)

    def _give_up_oldest(self) -> None:
        while self._num_bytes > MAX_BUFFER_BYTES and len(self._buffers) > 1:
            _, oldest = self._buffers.popitem(last=False)
            self._num_bytes -= oldest.gathered.nbytes
