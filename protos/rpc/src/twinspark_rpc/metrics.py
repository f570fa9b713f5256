"""Metrics of the calls of a server, the same in every service."""

import grpc
from prometheus_client import CollectorRegistry, Counter, Histogram


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

    def observe(self, method: str, code: grpc.StatusCode, seconds: float) -> None:
        """Count one call that has ended."""
        self._calls.labels(method, code.name).inc()
        self._seconds.labels(method).observe(seconds)
