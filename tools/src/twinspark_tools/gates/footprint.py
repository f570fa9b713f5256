"""What a server holds: gauges that return to where they were, and descriptors and memory of its processes."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from twinspark_tools.gates.gauges import read_new_metrics
from twinspark_tools.gates.server import Server

HELD = (
    "inflight_requests",
    "asyncio_tasks",
    "engine_running_requests",
    "engine_waiting_requests",
    "engine_prefilling_requests",
    "engine_used_kv_blocks",
    "engine_asyncio_tasks",
)
"""Gauges of what requests hold, after the gateway's prefix."""
PREFIX = "twinspark_gateway_"
NUM_READINGS = 4
"""Of which the least counts: a call of the gateway to the engine, and the reading itself, are tasks for a moment."""
PATIENCE_SECONDS = 10.0
POLL_SECONDS = 0.1


async def read_held(server: Server) -> dict[str, float]:
    """The gauges by name, from statistics copied after this call began. Raises as `read_new_metrics` does."""
    metrics = await read_new_metrics(server)
    return {name: metrics[PREFIX + name] for name in HELD}


async def read_least_held(server: Server) -> dict[str, float]:
    """The least value of each gauge in a few readings. Raises as `read_new_metrics` does."""
    readings = [await read_held(server) for _ in range(NUM_READINGS)]
    return {name: min(reading[name] for reading in readings) for name in HELD}


async def find_kept(server: Server, start: Mapping[str, float]) -> list[str]:
    """In words, gauges that do not come back to their start within PATIENCE_SECONDS. Raises as `read_new_metrics`."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        held = await read_held(server)
        kept = [f"{name} {held[name]:g}, was {start[name]:g}" for name in HELD if held[name] > start[name]]
        if not kept or time.monotonic() > deadline:
            return kept


async def read_footprint(server: Server) -> dict[str, float]:
    """Descriptors and resident bytes of the gateway and of every rank, by name. Raises openai.APIError."""
    metrics = await server.metrics()
    found = {
        "descriptors of the gateway": metrics["process_open_fds"],
        "resident bytes of the gateway": metrics["process_resident_memory_bytes"],
    }
    memory: Any = await server.client.get(f"{server.base_url}/memory", cast_to=object)
    for rank in memory["ranks"]:
        found[f"descriptors of rank {rank['rank']}"] = rank["host"]["open_descriptors"]
        found[f"resident bytes of rank {rank['rank']}"] = rank["host"]["rss"]
    return found


async def read_least_footprint(server: Server) -> dict[str, float]:
    """The least of a few readings by name. Raises openai.APIError."""
    readings = []
    for _ in range(NUM_READINGS):
        readings.append(await read_footprint(server))
        await asyncio.sleep(POLL_SECONDS)
    return {name: min(reading[name] for reading in readings) for name in readings[0]}
