"""Requests that run at the same time."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from twinspark_tools.gates.prompts import draw_prompt
from twinspark_tools.gates.replies import Reply, ReplyParts
from twinspark_tools.gates.server import Ask, Server

Result = TypeVar("Result")
MOST_DECODER_TOKENS = 4096
"""Many times what it decodes while one prompt is computed, and few enough to leave blocks for that prompt."""


async def gather_all(coroutines: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Results in order; where one raises, the others are ended before it is raised."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def join_one_by_one(server: Server, asks: Sequence[Ask]) -> list[Reply]:
    """Streamed replies; each request is sent when the one before it decodes, so that some join while others leave."""
    decodes = [asyncio.Event() for _ in asks]

    async def run(place: int) -> Reply:
        if place:
            await decodes[place - 1].wait()
        parts = ReplyParts()
        async for choice in server.stream(asks[place]):
            parts.add(choice)
            if len(parts.token_ids) > 1:
                decodes[place].set()
        decodes[place].set()
        return parts.build()

    return await gather_all(run(place) for place in range(len(asks)))


@asynccontextmanager
async def decoder(server: Server) -> AsyncIterator["asyncio.Task[None]"]:
    """A request that decodes while this is open; the task is done once it has ended, which it must not have before."""
    has_begun = asyncio.Event()
    prompt = draw_prompt(server.info, "decoder", 16)
    ask = Ask(prompt, min(MOST_DECODER_TOKENS, server.info.context_length - len(prompt)))

    async def run() -> None:
        try:
            async for _ in server.stream(ask):
                has_begun.set()
        finally:
            has_begun.set()

    task = asyncio.ensure_future(run())
    try:
        await has_begun.wait()
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
