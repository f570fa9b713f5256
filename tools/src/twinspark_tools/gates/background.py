"""background: a request that yields its slot to others is run again, and its client hears each token once."""

import asyncio

from twinspark_tools.gates.gauges import read_gauges
from twinspark_tools.gates.outcome import Outcome, failed
from twinspark_tools.gates.prompts import draw_prompt
from twinspark_tools.gates.replies import Comparison, Reply, ReplyParts
from twinspark_tools.gates.server import Ask, Server, ServerInfo
from twinspark_tools.gates.together import gather_all

PROMPT_TOKENS = 40
YIELDING_TOKENS = 256
"""Output tokens of the one that yields: it is far from its end when the others come."""
YIELD_AFTER = 16
"""Streamed events."""


async def run(server: Server) -> Outcome:
    """One background request, and then as many others as there are slots; all are compared with their replies alone."""
    yielding, others = build_asks(server.info)
    alone = [await server.complete(ask) for ask in [yielding, *others]]
    before = await read_gauges(server)
    has_said = asyncio.Event()
    replies = await gather_all([_yield(server, yielding, has_said), *(_come(server, ask, has_said) for ask in others)])
    after = await read_gauges(server)
    if after.yielded_requests_total == before.yielded_requests_total:
        return failed("no request yielded its slot, so nothing was tried")
    compared = Comparison()
    for place, (expected, found) in enumerate(zip(alone, replies, strict=True)):
        compared.add(f"request {place}" if place else "the one that yields", expected, found)
    return compared.outcome("replies equal those alone: a background request yielded its slot to others")


def build_asks(info: ServerInfo) -> tuple[Ask, list[Ask]]:
    """The one that yields, and the others."""
    sampling = {"temperature": 0, "frequency_penalty": 1.8, "priority": "background"}
    yielding = Ask(draw_prompt(info, "yields", PROMPT_TOKENS), YIELDING_TOKENS, sampling)
    return yielding, [Ask(draw_prompt(info, f"comes {place}", PROMPT_TOKENS)) for place in range(info.slots)]


async def _yield(server: Server, ask: Ask, has_said: asyncio.Event) -> Reply:
    parts, num_events = ReplyParts(), 0
    async for choice in server.stream(ask):
        parts.add(choice)
        num_events += 1
        if num_events == YIELD_AFTER:
            has_said.set()
    return parts.build()


async def _come(server: Server, ask: Ask, has_said: asyncio.Event) -> Reply:
    await has_said.wait()
    return await server.complete(ask)
