"""This rank's account of memory: process and machine from the kernel's files, the parts from their owners."""

import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

_PAGE_BYTES = resource.getpagesize()
_STATM = Path("/proc/self/statm")
_MEMINFO = Path("/proc/meminfo")


@dataclass(frozen=True, slots=True)
class MemoryAccount:
    """Bytes of one rank."""

    rank: int
    resident_bytes: int
    total_bytes: int
    free_bytes: int
    parts: Mapping[str, int]
    """weights, kv, state, workspace."""


Measure = Callable[[], MemoryAccount]


def measure_memory(rank: int, parts: Mapping[str, int]) -> MemoryAccount:
    """The account now. Raises OSError where the kernel offers no such files."""
    resident = int(_STATM.read_text().split()[1]) * _PAGE_BYTES
    fields = dict(line.split(":", 1) for line in _MEMINFO.read_text().splitlines())
    return MemoryAccount(rank, resident, _kibibytes(fields["MemTotal"]), _kibibytes(fields["MemAvailable"]), parts)


def _kibibytes(field: str) -> int:
    return int(field.split()[0]) * 1024
