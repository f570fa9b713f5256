"""load: many streams of mixed length at once, some of which are left; twice, to see what is not given back.

No request may end with an error, each reply is its reply alone, and afterwards the server holds what it held before;
for that, nobody else may use it meanwhile.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import replace

from openai import DefaultAsyncHttpxClient

from twinspark_tools.gates.crowd import MOST_OUTPUT_TOKENS, MOST_PROMPT_TOKENS, Visit, build_crowd
from twinspark_tools.gates.footprint import find_kept, read_least_footprint, read_least_held
from twinspark_tools.gates.outcome import Outcome, Verdict, failed, passed, skipped
from twinspark_tools.gates.replies import Comparison, Reply, ReplyParts
from twinspark_tools.gates.server import Server

MOST_GROWTH = 0.05
"""Of descriptors and resident memory, from the end of the first load to the end of the second."""


async def run(server: Server) -> Outcome:
    """Each visit alone, then all at once, twice."""
    if server.info.context_length < MOST_PROMPT_TOKENS + MOST_OUTPUT_TOKENS:
        return skipped(f"{MOST_PROMPT_TOKENS + MOST_OUTPUT_TOKENS} tokens do not fit the context")
    visits = build_crowd(server.info)
    alone = [await server.complete(visit.ask) for visit in visits]
    start = await read_least_held(server)
    footprints = []
    for load in ("first", "second"):
        replies = await _run_together(server, visits)
        outcome = _compare(visits, alone, replies)
        if outcome.verdict is Verdict.FAILED:
            return failed(f"{load} load: {outcome.detail}")
        if kept := await find_kept(server, start):
            return failed(f"{load} load: not given back: {'; '.join(kept)}")
        footprints.append(await read_least_footprint(server))
    first, second = footprints
    growth = {name: second[name] / first[name] - 1 for name in first}
    grown = [name for name in growth if growth[name] > MOST_GROWTH]
    if grown:
        numbers = "; ".join(f"{first[name]:.0f}, then {second[name]:.0f}" for name in grown)
        return failed(f"{' and '.join(grown)} grew by over {MOST_GROWTH:.0%} from load to load: {numbers}")
    num_left = sum(visit.num_events is not None for visit in visits)
    most = max(growth, key=lambda name: growth[name])
    return passed(f"2 x {len(visits)} streams, {num_left} left early; {most} grew most, by {growth[most]:.1%}")


async def _run_together(server: Server, visits: Sequence[Visit]) -> list[Reply | BaseException]:
    """All visits at once, over connections that are closed afterwards; what went wrong stands for the reply."""
    has_begun = asyncio.Event()
    async with server.client.copy(http_client=DefaultAsyncHttpxClient()) as client:
        own = replace(server, client=client)
        return await asyncio.gather(*(_visit(own, visit, has_begun) for visit in visits), return_exceptions=True)


async def _visit(server: Server, visit: Visit, has_begun: asyncio.Event) -> Reply:
    """One visit; has_begun: somebody's first token has come, so that whoever came last waits; or an error."""
    parts = ReplyParts()
    reading = asyncio.create_task(_read(server, visit, parts, has_begun))
    if visit.num_events == 0:
        await has_begun.wait()
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading
    else:
        await reading
    return parts.build()


async def _read(server: Server, visit: Visit, parts: ReplyParts, has_begun: asyncio.Event) -> None:
    num_events = 0
    try:
        async with contextlib.aclosing(server.stream(visit.ask)) as events:
            async for choice in events:
                has_begun.set()
                parts.add(choice)
                num_events += 1
                if num_events == visit.num_events:
                    return
    finally:
        has_begun.set()


def _compare(visits: Sequence[Visit], alone: Sequence[Reply], replies: Sequence[Reply | BaseException]) -> Outcome:
    errors = [reply for reply in replies if isinstance(reply, BaseException)]
    if errors:
        return failed(f"{len(errors)} of {len(replies)} requests ended with an error, {errors[0]!r}")
    comparison = Comparison()
    for number, (visit, expected, reply) in enumerate(zip(visits, alone, replies, strict=True)):
        assert not isinstance(reply, BaseException)
        if visit.num_events is None:
            comparison.add(f"request {number}", expected, reply)
        else:
            num_heard = len(reply.token_ids)
            begun = Reply(expected.token_ids[:num_heard], expected.scores[:num_heard], reply.finish_reason)
            comparison.add(f"request {number}, which left", begun, reply)
    return comparison.outcome("equal")
