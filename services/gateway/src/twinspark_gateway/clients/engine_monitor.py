"""Keeps the last copy of the engine's description and statistics, so that /health and /metrics never wait for it."""

import asyncio
import time
from collections.abc import Callable

import structlog

from twinspark_gateway.clients.engine import EngineClient
from twinspark_gateway.clients.running_calls import Stall
from twinspark_gateway.errors import ApiError, engine_unavailable
from twinspark_gateway.generation import EngineModel, EngineStats

log = structlog.get_logger()


class EngineMonitor:
    """Polls one engine from a task of the event loop. Reading never blocks."""

    def __init__(
        self,
        engine: EngineClient,
        *,
        poll_seconds: float,
        stale_seconds: float,
        is_strict: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._poll_seconds = poll_seconds
        self._stale_seconds = stale_seconds
        self._is_strict = is_strict
        self._clock = clock
        self._copied_at = 0.0
        self._is_reachable = False
        self.model: EngineModel | None = None
        self.stats: EngineStats | None = None

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            await self.poll()
            await asyncio.sleep(self._poll_seconds)

    async def poll(self) -> None:
        """Take one copy. An engine that came back is described again: it may be another one."""
        try:
            stats = await self._engine.get_stats()
            restarted = self.stats is not None and stats.gauges["epoch"] != self.stats.gauges["epoch"]
            if self.model is None or not self._is_reachable or restarted:
                self.model = await self._engine.describe()
                log.info("engine_described", fingerprint=self.model.fingerprint, state=stats.state)
        except ApiError as error:
            if self._is_reachable:
                log.warning("engine_unreachable", reason=error.message)
            self._is_reachable = False
            return
        if self.stats is not None and stats.state != self.stats.state:
            log.info("engine_state", state=stats.state)
        if self.stats is None or stats.counters["steps_total"] != self.stats.counters["steps_total"]:
            self._engine.calls.note_progress()
        self.stats, self._copied_at, self._is_reachable = stats, self._clock(), True

    @property
    def age_seconds(self) -> float | None:
        """Age of the statistics; None before the first copy."""
        return self._clock() - self._copied_at if self.stats is not None else None

    @property
    def problem(self) -> str | None:
        """Why the engine takes no requests, None if it does."""
        age = self.age_seconds
        if self.stats is None or self.model is None or age is None:
            return "it was not reached yet"
        if not self._is_reachable or age > self._stale_seconds + self._poll_seconds:
            return "it does not answer"
        if not self.stats.is_serving:
            return f"it is {self.stats.state}"
        if self._is_strict and self.find_stalls():
            return "a request has had no token for too long"
        return None

    def find_stalls(self) -> list[Stall]:
        """Give the requests that the engine leaves without a token for too long."""
        return self._engine.calls.find_stalls()

    def serving_model(self) -> EngineModel:
        """Give the description of an engine that takes requests; raises a 503 that says why it does not."""
        problem = self.problem
        if problem is not None or self.model is None:
            raise engine_unavailable(problem or "it was not reached yet")
        return self.model
