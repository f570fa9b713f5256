"""Builds the MemorySource that the settings name; the only place that asks torch for a device's memory."""

import torch

from twinspark_engine.memory import AvailableMemory, DeviceMemory, MemorySource, UnifiedMemory


def build_memory_source(name: str) -> MemorySource:
    """By the setting `memory_source`. Raises KeyError for another name."""
    sources: dict[str, MemorySource] = {
        "available": AvailableMemory(),
        "unified": UnifiedMemory(_unused_cache_bytes),
        "device": DeviceMemory(torch.cuda.mem_get_info, _unused_cache_bytes),
    }
    return sources[name]


def _unused_cache_bytes() -> int:
    """Bytes that torch's allocator holds on the device and that no tensor uses; 0 without a device."""
    if not torch.cuda.is_available():
        return 0
    return torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
