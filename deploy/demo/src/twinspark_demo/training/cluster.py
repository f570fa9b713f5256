"""The processes of one training run: one a GPU, each with rows of its own, gradients averaged."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Cluster:
    """This process' place; the values that torchrun sets, or those of a single process."""

    rank: int
    world_size: int
    device: torch.device

    @property
    def is_first(self) -> bool:
        """Whether this process prints and saves."""
        return self.rank == 0

    def average(self, tensors: Sequence[Tensor]) -> None:
        """In place: the mean over all processes. Joins every process."""
        if self.world_size > 1:
            for tensor in tensors:
                dist.all_reduce(tensor, op=dist.ReduceOp.AVG)

    def broadcast(self, tensors: Sequence[Tensor]) -> None:
        """In place: the first process' values. Joins every process."""
        if self.world_size > 1:
            for tensor in tensors:
                dist.broadcast(tensor, src=0)

    def wait(self) -> None:
        """Returns when every process is here."""
        if self.world_size > 1:
            dist.barrier(device_ids=[self.device.index])

    def leave(self) -> None:
        """Ends the process group."""
        if self.world_size > 1:
            dist.destroy_process_group()


def join_cluster() -> Cluster:
    """The cluster that torchrun started this process in; else one process, on the GPU where there is one."""
    world_size = int(os.environ.get("WORLD_SIZE", "1"))
    rank = int(os.environ.get("RANK", "0"))
    if not torch.cuda.is_available():
        if world_size > 1:
            raise RuntimeError("several processes need a GPU each")
        return Cluster(0, 1, torch.device("cpu"))
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    if world_size > 1:
        dist.init_process_group("nccl", device_id=device)
    return Cluster(rank, world_size, device)
