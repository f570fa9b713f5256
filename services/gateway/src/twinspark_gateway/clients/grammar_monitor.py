"""Keeps what is known of the grammar service, so that /health and /metrics never wait for it."""

import asyncio

import structlog

from twinspark_gateway.clients.grammar import GrammarClient

log = structlog.get_logger()


class GrammarMonitor:
    """Polls one grammar service from a task of the event loop."""

    def __init__(self, grammar: GrammarClient, *, poll_seconds: float) -> None:
        self._grammar = grammar
        self._poll_seconds = poll_seconds
        # None before the first answer.
        self.is_serving: bool | None = None

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            await self.poll()
            await asyncio.sleep(self._poll_seconds)

    async def poll(self) -> None:
        """Ask once."""
        is_serving = await self._grammar.is_serving()
        if is_serving is not self.is_serving:
            log.info("grammar_state", serving=is_serving)
        self.is_serving = is_serving
