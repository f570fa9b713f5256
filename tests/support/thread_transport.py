"""Ranks as threads of one process: each gather meets at a barrier and answers in rank order."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch
from torch import Tensor

from twinspark_engine.ranks.transport import Transport, TransportError

TIMEOUT_S = 60.0
Result = TypeVar("Result")


class ThreadGroup:
    """The meeting place of world_size threads. One that fails breaks the barrier for all."""

    def __init__(self, world_size: int) -> None:
        self.world_size = world_size
        self.barrier = threading.Barrier(world_size, timeout=TIMEOUT_S)
        self.parts: list[Tensor | None] = [None] * world_size


class ThreadTransport:
    """One rank's end of a ThreadGroup."""

    def __init__(self, group: ThreadGroup, rank: int) -> None:
        self._group = group
        self.rank = rank
        self.world_size = group.world_size

    def gather(self, x: Tensor) -> Tensor:
        """[world_size, *x.shape] in rank order. Raises TransportError if a rank failed or did not come in time."""
        try:
            self._group.parts[self.rank] = x
            self._group.barrier.wait()
            shapes = {(part.shape, part.dtype) for part in self._group.parts if part is not None}
            if len(shapes) != 1:
                raise TransportError(f"ranks sent different shapes: {shapes}")
            gathered = torch.stack([part for part in self._group.parts if part is not None])
            self._group.barrier.wait()
        except threading.BrokenBarrierError as error:
            raise TransportError("another rank failed or did not come") from error
        return gathered

    def check(self) -> None:
        """Raise TransportError once the barrier is broken."""
        if self._group.barrier.broken:
            raise TransportError("another rank failed")


def run_ranks(world_size: int, work: Callable[[Transport], Result]) -> list[Result]:
    """Run work(transport) on every rank at once; results in rank order. The first error of a rank is raised."""
    group = ThreadGroup(world_size)

    def guarded(rank: int) -> Result:
        try:
            return work(ThreadTransport(group, rank))
        except BaseException:
            group.barrier.abort()
            raise

    with ThreadPoolExecutor(world_size, thread_name_prefix="rank") as pool:
        futures = [pool.submit(guarded, rank) for rank in range(world_size)]
    errors = [error for future in futures if (error := future.exception()) is not None]
    for error in sorted(errors, key=lambda error: isinstance(error, TransportError)):
        raise error
    return [future.result() for future in futures]
