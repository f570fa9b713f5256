"""cancel: a client that leaves disturbs nobody, and what its request held comes back."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field

from twinspark_tools.gates.gauges import read_gauges, wait_for_requests
from twinspark_tools.gates.outcome import Outcome, failed, skipped
from twinspark_tools.gates.prompts import draw_prompt
from twinspark_tools.gates.replies import Comparison, Reply, ReplyParts
from twinspark_tools.gates.server import GREEDY, Ask, Server, ServerInfo
from twinspark_tools.gates.together import gather_all

NUM_STAYING = 3
LEAVE_AFTER = 50
"""Streamed events."""
STAYING_TOKENS = 2 * LEAVE_AFTER
"""Output tokens of those that stay: they go on decoding when the other has left."""
LEAVING_TOKENS = 20 * LEAVE_AFTER
"""It never comes to so many."""
PROMPT_TOKENS = 300


@dataclass(slots=True)
class Scene:
    """What happened so far, for the requests that wait for it."""

    num_begun: int = 0
    all_begun: asyncio.Event = field(default_factory=asyncio.Event)
    num_ended: int = 0
    num_ended_before: int | None = None
    """Of those that stay, when the other left; None: it did not leave."""


async def run(server: Server) -> Outcome:
    """Those that stay are compared with their replies alone, and so is the prompt of the one that left, sent again."""
    info = server.info
    if info.slots == 1:
        return skipped("with one slot nobody decodes beside the client that leaves")
    if info.context_length < PROMPT_TOKENS + STAYING_TOKENS:
        return skipped(f"{PROMPT_TOKENS + STAYING_TOKENS} tokens do not fit the context")
    staying, leaving = build_asks(info)
    again = Ask(leaving.prompt)
    alone = [await server.complete(ask) for ask in [*staying, again]]
    before = await read_gauges(server)
    scene = Scene()
    stays = [_stay(server, ask, scene, len(staying)) for ask in staying]
    *replies, _ = await gather_all([*stays, _leave(server, leaving, scene)])
    if scene.num_ended_before != 0:
        return failed("the client did not leave while all others decoded, so nothing was tried")
    after = await wait_for_requests(server, before.num_requests)
    if after.num_requests != before.num_requests:
        return failed(f"{after.num_requests} requests are running or waiting, where {before.num_requests} were before")
    if after.kv_usage_ratio != before.kv_usage_ratio:
        return failed(f"{after.kv_usage_ratio:.4f} of the KV blocks are in use, and {before.kv_usage_ratio:.4f} before")
    if after.cancelled_requests_total <= before.cancelled_requests_total:
        return failed("the engine counts no cancelled request: the one that was left ran on to its end")
    compared = Comparison()
    replies.append(await server.complete(again))
    for place, (expected, found) in enumerate(zip(alone, replies, strict=True)):
        compared.add(f"request {place} of those that stay" if place < len(staying) else "the next", expected, found)
    return compared.outcome("replies equal those alone after a client left; its slot and blocks are back")


def build_asks(info: ServerInfo) -> tuple[list[Ask], Ask]:
    """Those that stay, and the one whose client leaves."""
    lengths = [PROMPT_TOKENS // (place + 1) for place in range(min(NUM_STAYING, info.slots - 1))]
    samplings = [GREEDY if place % 2 else {"temperature": 1, "seed": 1234} for place in range(len(lengths))]
    staying = [
        Ask(draw_prompt(info, f"stays {place}", length), STAYING_TOKENS, sampling)
        for place, (length, sampling) in enumerate(zip(lengths, samplings, strict=True))
    ]
    leaving_tokens = min(LEAVING_TOKENS, info.context_length - PROMPT_TOKENS)
    return staying, Ask(draw_prompt(info, "leaves", PROMPT_TOKENS), leaving_tokens)


async def _stay(server: Server, ask: Ask, scene: Scene, num_staying: int) -> Reply:
    parts = ReplyParts()
    async for choice in server.stream(ask):
        if not parts.token_ids:
            scene.num_begun += 1
            if scene.num_begun == num_staying:
                scene.all_begun.set()
        parts.add(choice)
    scene.num_ended += 1
    return parts.build()


async def _leave(server: Server, ask: Ask, scene: Scene) -> Reply:
    await scene.all_begun.wait()
    parts, num_events = ReplyParts(), 0
    async with aclosing(server.stream(ask)) as choices:
        async for choice in choices:
            parts.add(choice)
            num_events += 1
            if num_events == LEAVE_AFTER:
                scene.num_ended_before = scene.num_ended
                break
    return parts.build()
