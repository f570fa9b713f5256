"""Memory of this rank: where free memory is read, and the account that /memory shows.

Machines differ in what "free" means, and admission must not: a `MemorySource` reads it, everything else is shared.
"""

import os
import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_PAGE_BYTES = resource.getpagesize()
_STATM = Path("/proc/self/statm")
_STATUS = Path("/proc/self/status")
_DESCRIPTORS = Path("/proc/self/fd")
MEMINFO = Path("/proc/meminfo")


@dataclass(frozen=True, slots=True)
class MemoryReading:
    """Bytes of what the model's tensors lie in."""

    total_bytes: int
    free_bytes: int
    """What may still be allocated."""


class MemorySource(Protocol):
    """Reads the memory that admission counts with."""

    name: str
    """As in the account and in the settings."""

    def read(self) -> MemoryReading:
        """The reading now. Raises OSError where the kernel or the driver does not answer."""
        ...


class AvailableMemory:
    """A CPU machine: the kernel gives up clean page cache for what is allocated, so MemAvailable is free."""

    name = "available"

    def __init__(self, meminfo: Path = MEMINFO) -> None:
        self._meminfo = meminfo

    def read(self) -> MemoryReading:
        """MemTotal and MemAvailable."""
        fields = read_meminfo(self._meminfo)
        return MemoryReading(fields["MemTotal"], fields["MemAvailable"])


class UnifiedMemory:
    """CPU and GPU share the machine's memory: what the device calls free is MemFree, page cache counts as used.

    What the allocator of tensors holds and does not use is free to us, too.
    """

    name = "unified"

    def __init__(self, cached_bytes: Callable[[], int], meminfo: Path = MEMINFO) -> None:
        self._cached_bytes = cached_bytes
        self._meminfo = meminfo

    def read(self) -> MemoryReading:
        """MemTotal and MemFree."""
        fields = read_meminfo(self._meminfo)
        return MemoryReading(fields["MemTotal"], fields["MemFree"] + self._cached_bytes())


class DeviceMemory:
    """A GPU with memory of its own."""

    name = "device"

    def __init__(self, free_and_total: Callable[[], tuple[int, int]], cached_bytes: Callable[[], int]) -> None:
        """free_and_total as torch.cuda.mem_get_info answers; cached_bytes: held by the allocator, and unused."""
        self._free_and_total = free_and_total
        self._cached_bytes = cached_bytes

    def read(self) -> MemoryReading:
        """The driver's numbers."""
        free, total = self._free_and_total()
        return MemoryReading(total, free + self._cached_bytes())


@dataclass(frozen=True, slots=True)
class KvPool:
    """The KV blocks of a rank."""

    num_blocks: int
    """Blocks that requests share; the null and the trash block come on top."""
    num_used_blocks: int
    block_tokens: int
    block_bytes: int
    """Over all layers and families of rows."""


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """What admission counts with, in bytes."""

    slot_bytes: int
    """One more slot, its blocks apart."""
    reserve_bytes: int
    """Stays free after load."""
    admit_bytes: int
    """Stays free when a request is admitted beside others."""


@dataclass(frozen=True, slots=True)
class MemoryAccount:
    """Bytes of one rank."""

    rank: int
    resident_bytes: int
    total_bytes: int
    free_bytes: int
    """As the source reads it."""
    parts: Mapping[str, int]
    """weights, kv, state, scratch, workspace."""
    source: str = "available"
    """Name of the MemorySource."""
    peak_resident_bytes: int = 0
    available_bytes: int = 0
    """The machine's MemAvailable."""
    kv_pool: KvPool | None = None
    budget: MemoryBudget | None = None
    num_open_descriptors: int = 0
    """Files and sockets of the process: no memory, but what leaks beside it."""


Measure = Callable[[], MemoryAccount]


def measure_memory(
    rank: int,
    parts: Mapping[str, int],
    source: MemorySource | None = None,
    kv_pool: KvPool | None = None,
    budget: MemoryBudget | None = None,
) -> MemoryAccount:
    """The account now; without a source, of the machine's available memory. Raises OSError as the source does."""
    source = source or AvailableMemory()
    reading = source.read()
    return MemoryAccount(
        rank=rank,
        source=source.name,
        resident_bytes=int(_STATM.read_text().split()[1]) * _PAGE_BYTES,
        peak_resident_bytes=_read_fields(_STATUS)["VmHWM"],
        total_bytes=reading.total_bytes,
        free_bytes=reading.free_bytes,
        available_bytes=read_meminfo(MEMINFO)["MemAvailable"],
        parts=parts,
        kv_pool=kv_pool,
        budget=budget,
        num_open_descriptors=len(os.listdir(_DESCRIPTORS)),
    )


def read_meminfo(path: Path) -> dict[str, int]:
    """Fields of /proc/meminfo in bytes, those without a unit left out."""
    return _read_fields(path)


def _read_fields(path: Path) -> dict[str, int]:
    """The "name: number kB" lines of a file, in bytes."""
    fields = {}
    for line in path.read_text().splitlines():
        name, _, value = line.partition(":")
        if value.endswith("kB"):
            fields[name] = int(value.split()[0]) * 1024
    return fields
