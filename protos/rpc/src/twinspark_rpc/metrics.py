"""Metrics of a server's calls and of its event loop, the same in every service."""

import asyncio

import grpc
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class RpcMetrics:
    """Counts and times calls. Labels: the method's full name and the status, never anything of a request."""

    def __init__(self, service: str, registry: CollectorRegistry) -> None:
        self._calls = Counter(
            f"twinspark_{service}_rpcs_total",
            "Calls that ended, by method and status.",
            ["method", "code"],
            registry=registry,
        )
        self._seconds = Histogram(
            f"twinspark_{service}_rpc_duration_seconds", "Time from the start of a call to its end, by method.",
            ["method"], registry=registry, buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 2, 10, 60, 300),
        )  # fmt: skip
        self._tasks = Gauge(f"twinspark_{service}_asyncio_tasks", "Tasks of the event loop.", registry=registry)

    def watch_tasks(self, loop: asyncio.AbstractEventLoop) -> None:
        """Show how many tasks the loop has whenever the metrics are read, in whatever thread."""
        self._tasks.set_function(lambda: len(asyncio.all_tasks(loop)))

    def observe(self, method: str, code: grpc.StatusCode, seconds: float) -> None:
        """Count one call that has ended."""
        self._calls.labels(method, code.name).inc()
        self._seconds.labels(method).observe(seconds)
