"""A group over torch's gloo, built directly (never torch's default group)."""

from datetime import timedelta
from typing import Any, Protocol

import torch.distributed as dist
from torch import Tensor

from twinspark_engine.ranks.exchange_buffers import ExchangeBuffer
from twinspark_engine.ranks.store import Store


class _Work(Protocol):
    """A started send or receive."""

    def wait(self) -> bool:
        """Block until the bytes have moved. Raises RuntimeError on failure and after the group's timeout."""
        ...


class _Gloo(Protocol):
    """Starts sends and receives, in order for each peer."""

    def send(self, tensors: list[Tensor], peer: int, tag: int) -> _Work: ...
    def recv(self, tensors: list[Tensor], peer: int, tag: int) -> _Work: ...


class GlooGroup:
    """A PairGroup. An all-gather is built from one send and one receive for each peer: gloo's own is slower."""

    def __init__(self, gloo: _Gloo, rank: int, world_size: int) -> None:
        self._gloo: _Gloo | None = gloo
        self._rank = rank
        self._peers = tuple(peer for peer in range(world_size) if peer != rank)

    def exchange(self, buffer: ExchangeBuffer) -> None:
        """See PairGroup.exchange."""
        gloo = self._gloo
        if gloo is None:
            raise RuntimeError("the group is closed")
        works = [gloo.recv([buffer.parts[peer]], peer, 0) for peer in self._peers]
        works += [gloo.send([buffer.parts[self._rank]], peer, 0) for peer in self._peers]
        for work in works:
            work.wait()

    def close(self) -> None:
        """See PairGroup.close: gloo closes its sockets with the last reference."""
        self._gloo = None


def form_gloo_group(store: Store, prefix: str, rank: int, world_size: int, host: str, timeout: timedelta) -> GlooGroup:
    """A FormGroup over gloo. Raises RuntimeError."""
    distributed: Any = dist
    gloo = distributed.ProcessGroupGloo
    options = gloo._Options()  # noqa: SLF001
    options._devices = [gloo.create_device(hostname=host)]  # noqa: SLF001
    options._timeout = timeout  # noqa: SLF001
    group = gloo(distributed.PrefixStore(prefix, store), rank, world_size, options)
    return GlooGroup(group, rank, world_size)
