"""Memory sources read what free means on their kind of machine; the account is that of this process."""

from pathlib import Path

import pytest
import torch

from twinspark_engine.memory import (
    AvailableMemory,
    DeviceMemory,
    KvPool,
    MemoryBudget,
    MemorySource,
    UnifiedMemory,
    measure_memory,
)
from twinspark_engine.memory_sources import build_memory_source
from twinspark_engine.ranks.convert import memory_from_proto, memory_to_proto

# As the kernel writes it; page cache is free for a CPU machine and in use for a device that shares its memory.
MEMINFO = """MemTotal:       1000 kB
MemFree:         100 kB
MemAvailable:    700 kB
Cached:          600 kB
HugePages_Total:       0
"""


@pytest.fixture
def meminfo(tmp_path: Path) -> Path:
    path = tmp_path / "meminfo"
    path.write_text(MEMINFO)
    return path


def test_page_cache_is_free_on_a_cpu_machine_and_used_on_unified_memory(meminfo: Path) -> None:
    cpu, unified = AvailableMemory(meminfo).read(), UnifiedMemory(lambda: 0, meminfo).read()
    assert (cpu.total_bytes, cpu.free_bytes) == (1000 * 1024, 700 * 1024)
    assert (unified.total_bytes, unified.free_bytes) == (1000 * 1024, 100 * 1024)


def test_what_the_allocator_holds_and_does_not_use_is_free() -> None:
    assert DeviceMemory(lambda: (30, 80), lambda: 5).read().free_bytes == 35
    assert DeviceMemory(lambda: (30, 80), lambda: 5).read().total_bytes == 80


def test_unified_memory_counts_the_allocators_cache(meminfo: Path) -> None:
    assert UnifiedMemory(lambda: 24, meminfo).read().free_bytes == 100 * 1024 + 24


@pytest.mark.parametrize("name", ["available", "unified"])
def test_a_source_by_its_setting_reads_this_machine(name: str) -> None:
    source: MemorySource = build_memory_source(name)
    reading = source.read()
    assert source.name == name
    assert 0 < reading.free_bytes <= reading.total_bytes


@pytest.mark.gpu
def test_a_gpus_own_memory_is_read_and_its_cache_counts_as_free() -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    source = build_memory_source("device")
    torch.cuda.empty_cache()
    before = source.read()
    held = torch.empty(2**28, dtype=torch.uint8, device="cuda")
    during = source.read()
    del held
    after = source.read()
    # The driver gives whole pages of 2 MiB.
    assert abs(before.free_bytes - during.free_bytes - 2**28) <= 2**25
    assert abs(before.free_bytes - after.free_bytes) <= 2**25
    assert before.total_bytes == torch.cuda.mem_get_info()[1]


def test_the_account_is_of_this_process_and_survives_the_wire() -> None:
    kept = bytearray(2**25)
    pool, budget = KvPool(9, 2, 256, 1000), MemoryBudget(10, 20, 30)
    account = measure_memory(1, {"weights": 5}, build_memory_source("unified"), pool, budget)
    assert account.resident_bytes > len(kept)
    assert account.peak_resident_bytes >= account.resident_bytes - 2**20
    assert account.free_bytes <= account.total_bytes
    assert account.source == "unified"
    assert memory_from_proto(memory_to_proto(account)) == account


def test_an_account_without_blocks_has_none_after_the_wire() -> None:
    account = measure_memory(0, {})
    assert memory_from_proto(memory_to_proto(account)) == account
    assert account.kv_pool is None
