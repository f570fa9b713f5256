"""What the server says of its engine in /metrics, from a copy that is known to be new."""

import asyncio
import time
from dataclasses import dataclass

from twinspark_tools.gates.server import Server

PREFIX = "twinspark_gateway_engine_"
POLL_SECONDS = 0.05
PATIENCE_SECONDS = 60.0
"""After which statistics that do not come, or slots that do not empty, are given up."""


@dataclass(frozen=True, slots=True)
class Gauges:
    """The engine at one moment."""

    running_requests: int
    waiting_requests: int
    kv_usage_ratio: float
    """Share of the KV blocks in use."""
    cancelled_requests_total: int
    yielded_requests_total: int
    """Times that a background request gave its slot up."""
    slot_admissions: tuple[int, ...]
    """Requests that were given each slot."""

    @property
    def num_requests(self) -> int:
        """In a slot, or waiting for one."""
        return self.running_requests + self.waiting_requests


async def read_new_metrics(server: Server) -> dict[str, float]:
    """/metrics with the engine's statistics copied after this call began. Raises TimeoutError where no copy comes."""
    began = time.monotonic()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            asked = time.monotonic()
            metrics = await server.metrics()
            if metrics[f"{PREFIX}stats_age_seconds"] < asked - began:
                return metrics
            await asyncio.sleep(POLL_SECONDS)


async def read_gauges(server: Server) -> Gauges:
    """The engine's statistics, copied after this call began. Raises TimeoutError where no copy comes."""
    metrics = await read_new_metrics(server)
    return Gauges(
        running_requests=int(metrics[f"{PREFIX}running_requests"]),
        waiting_requests=int(metrics[f"{PREFIX}waiting_requests"]),
        kv_usage_ratio=metrics[f"{PREFIX}kv_usage_ratio"],
        cancelled_requests_total=int(metrics[f"{PREFIX}cancelled_requests_total"]),
        yielded_requests_total=int(metrics[f"{PREFIX}yielded_requests_total"]),
        slot_admissions=tuple(
            int(metrics[f"{PREFIX}slot_admissions_total:{slot}"]) for slot in range(server.info.slots)
        ),
    )


async def wait_for_requests(server: Server, num_requests: int) -> Gauges:
    """Statistics of a time when there are so many requests, or the last after PATIENCE_SECONDS."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if (await read_gauges(server)).num_requests == num_requests:
            break
    # Once more: what a request held may be given back a moment after it was counted out.
    return await read_gauges(server)
