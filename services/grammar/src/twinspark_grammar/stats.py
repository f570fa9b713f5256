"""Counters and gauges of the service. Written by the event loop only."""

from dataclasses import dataclass


@dataclass(slots=True)
class Stats:
    """Counters since the process started never go down."""

    num_streams: int = 0
    num_compiling: int = 0
    """Compilations that run or wait for their turn."""
    compiled_total: int = 0
    compile_cache_hits_total: int = 0
    refused_total: int = 0
    killed_total: int = 0
    """Compilations that were killed at a limit; each counts as refused too."""
    compiler_restarts_total: int = 0
    masks_total: int = 0
    """Rows."""
    compile_us_total: int = 0
    mask_us_total: int = 0
    cache_bytes: int = 0
    evicted_total: int = 0
