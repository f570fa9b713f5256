"""cancel: a client that leaves, decoding or in its prompt, disturbs nobody, and what its request held comes back."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial

from twinspark_tools.gates.gauges import Gauges, read_gauges, wait_for_requests
from twinspark_tools.gates.outcome import Outcome, failed, skipped
from twinspark_tools.gates.prompts import draw_prompt
from twinspark_tools.gates.replies import Comparison, Reply, ReplyParts
from twinspark_tools.gates.server import GREEDY, Ask, Server, ServerInfo
from twinspark_tools.gates.together import gather_all

NUM_STAYING = 3
LEAVE_AFTER = 50
"""Streamed events."""
STAYING_TOKENS = 3 * LEAVE_AFTER
"""Output tokens of those that stay: they go on decoding when the other has left."""
LEAVING_TOKENS = 20 * LEAVE_AFTER
"""It never comes to so many."""
PROMPT_TOKENS = 300
LONG_PROMPT_CHUNKS = 8
"""Of the prompt that is left before its end."""


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
    staying, leaving, leaving_in_prompt = build_asks(info)
    again = Ask(leaving.prompt)
    alone = [await server.complete(ask) for ask in [*staying, again]]
    compared = Comparison()
    for leave in (partial(_leave, server, leaving), partial(_leave_in_prompt, server, leaving_in_prompt)):
        before = await read_gauges(server)
        scene = Scene()
        stays = [_stay(server, ask, scene, len(staying)) for ask in staying]
        *replies, _ = await gather_all([*stays, leave(scene)])
        if scene.num_ended_before != 0:
            return failed("the client did not leave while all others decoded; does somebody else use the server?")
        if (kept := await _find_kept(server, before)) is not None:
            return failed(kept)
        replies.append(await server.complete(again))
        for place, (expected, found) in enumerate(zip(alone, replies, strict=True)):
            name = f"request {place} of those that stay" if place < len(staying) else "the next"
            compared.add(name, expected, found)
    return compared.outcome("replies equal those alone after a client left; its slot and blocks are back")


async def _find_kept(server: Server, before: Gauges) -> str | None:
    """What the engine still holds of the request that was left, in words; None: nothing."""
    after = await wait_for_requests(server, before.num_requests)
    if after.num_requests != before.num_requests:
        return f"{after.num_requests} requests are running or waiting, where {before.num_requests} were before"
    if after.kv_usage_ratio != before.kv_usage_ratio:
        return f"{after.kv_usage_ratio:.4f} of the KV blocks are in use, and {before.kv_usage_ratio:.4f} before"
    if after.cancelled_requests_total <= before.cancelled_requests_total:
        return "the engine counts no cancelled request: the one that was left ran on to its end"
    return None


def build_asks(info: ServerInfo) -> tuple[list[Ask], Ask, Ask]:
    """Those that stay, the one whose client leaves while it decodes, and the one that is left in its prompt."""
    lengths = [PROMPT_TOKENS // (place + 1) for place in range(min(NUM_STAYING, info.slots - 1))]
    samplings = [GREEDY if place % 2 else {"temperature": 1, "seed": 1234} for place in range(len(lengths))]
    staying = [
        Ask(draw_prompt(info, f"stays {place}", length), STAYING_TOKENS, sampling)
        for place, (length, sampling) in enumerate(zip(lengths, samplings, strict=True))
    ]
    leaving_tokens = min(LEAVING_TOKENS, info.context_length - PROMPT_TOKENS)
    long_tokens = min(LONG_PROMPT_CHUNKS * info.chunk_tokens_beside_decoders, info.context_length - 1)
    long = Ask(draw_prompt(info, "leaves in its prompt", long_tokens), 1)
    return staying, Ask(draw_prompt(info, "leaves", PROMPT_TOKENS), leaving_tokens), long


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


async def _leave_in_prompt(server: Server, ask: Ask, scene: Scene) -> Reply:
    await scene.all_begun.wait()
    await server.leave_in_prompt(ask)
    scene.num_ended_before = scene.num_ended
    return ReplyParts().build()
