"""What is measured, each as one flat record of a name and numbers."""

import asyncio
import itertools
import math
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from twinspark_tools.bench.timed_stream import Server, TimedReply

FIRST_ID, LAST_ID = 300, 1300
"""Prompts are random ids from this range: ordinary tokens in every vocabulary that is served."""
SHORT_TOKENS = 64
NUM_ARRIVALS = 8


@dataclass(frozen=True, slots=True)
class BenchSizes:
    """How much is run."""

    runs: int
    decode_tokens: int
    prefill_tokens: Sequence[int]
    num_streams: int
    num_turns: int
    beside_tokens: int
    """Prompt beside which a short one is asked."""


class Bench:
    """Runs every measure against one server, one after the other. Prompts never repeat."""

    def __init__(self, server: Server, sizes: BenchSizes) -> None:
        self._server = server
        self._sizes = sizes
        self._source = random.Random(time.time_ns())

    async def warm_up(self) -> None:
        """The first request of a process pays for what later ones do not."""
        await self._server.complete(self._prompt(SHORT_TOKENS), 8)

    async def decode(self) -> dict[str, Any]:
        """One stream."""
        replies = [
            await self._server.complete(self._prompt(SHORT_TOKENS), self._sizes.decode_tokens) for _ in self._runs
        ]
        return {
            "measure": "decode, 1 stream",
            "tokens_per_second": _median([reply.decode_rate for reply in replies]),
            "output_tokens": self._sizes.decode_tokens,
            "first_token_ms": 1000 * _median([reply.first_token_seconds for reply in replies]),
            "slowest_gap_ms": 1000 * max(_slowest_gap(reply) for reply in replies),
        }

    async def prefill(self, num_tokens: int) -> dict[str, Any]:
        """Time to the first token of one long prompt."""
        replies = [await self._server.complete(self._prompt(num_tokens), 1) for _ in self._runs]
        seconds = _median([reply.first_token_seconds for reply in replies])
        return {
            "measure": f"prefill, {num_tokens} tokens",
            "tokens_per_second": num_tokens / seconds,
            "prompt_tokens": num_tokens,
            "first_token_ms": 1000 * seconds,
        }

    async def concurrent(self) -> dict[str, Any]:
        """Several streams at once, each time after one alone, from sending to the last token of the last."""
        rates = [(await self._rate_of(1), await self._rate_of(self._sizes.num_streams)) for _ in self._runs]
        return {
            "measure": f"decode, {self._sizes.num_streams} streams",
            "tokens_per_second": _median([several for _, several in rates]),
            "times_one_stream": _median([several / one for one, several in rates]),
            "output_tokens": self._sizes.decode_tokens,
        }

    async def beside_prefill(self, chunk_tokens: int) -> dict[str, Any]:
        """A short prompt that arrives while a long one is computed, in chunk times of the long one alone.

        chunk_tokens: prompt tokens of one step where nobody else waits. Arrivals are spread evenly over the long
        prompt's time; the slowest is that of the one that just missed a step.
        """
        num_tokens = self._sizes.beside_tokens
        alone = [await self._server.complete(self._prompt(num_tokens), 1) for _ in self._runs]
        seconds = _median([reply.first_token_seconds for reply in alone])
        chunk_seconds = seconds / math.ceil(num_tokens / chunk_tokens)
        waits = []
        for arrival in range(NUM_ARRIVALS):
            running = asyncio.create_task(self._server.complete(self._prompt(num_tokens), 1))
            await asyncio.sleep(seconds * (arrival + 0.5) / NUM_ARRIVALS)
            is_beside = not running.done()
            reply = await self._server.complete(self._prompt(SHORT_TOKENS), 1)
            await running
            if is_beside:
                waits.append(reply.first_token_seconds)
        name = f"short beside {num_tokens} tokens"
        if not waits:
            return {
                "measure": name,
                "error": "no request arrived while the long prompt was computed: take a longer one",
            }
        return {
            "measure": name,
            "first_token_ms": 1000 * _median(waits),
            "slowest_first_token_ms": 1000 * max(waits),
            "chunk_ms": 1000 * chunk_seconds,
            "chunk_times": _median(waits) / chunk_seconds,
            "slowest_chunk_times": max(waits) / chunk_seconds,
            "arrivals": len(waits),
        }

    async def replay(self) -> dict[str, Any]:
        """A conversation that grows by a reply and a question each turn, sent whole each time."""
        messages: list[dict[str, str]] = []
        replies: list[TimedReply] = []
        for turn in range(self._sizes.num_turns):
            words = " ".join(self._source.choice(("number", "word", "river", "stone")) for _ in range(60))
            messages.append({"role": "user", "content": f"Turn {turn}, {self._source.random()}: {words}?"})
            replies.append(await self._server.chat(messages, 32))
            messages.append({"role": "assistant", "content": replies[-1].text or "-"})
        return {
            "measure": f"replay, {len(replies)} turns",
            "first_token_ms": 1000 * _median([reply.first_token_seconds for reply in replies]),
            "last_first_token_ms": 1000 * replies[-1].first_token_seconds,
            "prompt_tokens": replies[-1].prompt_tokens,
            "cached_tokens": replies[-1].cached_tokens,
            "total_seconds": sum(reply.total_seconds for reply in replies),
        }

    @property
    def _runs(self) -> range:
        return range(self._sizes.runs)

    async def _rate_of(self, num_streams: int) -> float:
        """Output tokens a second of that many streams together, their prompts' time included."""
        started = time.perf_counter()
        prompts = [self._prompt(SHORT_TOKENS) for _ in range(num_streams)]
        asked = [self._server.complete(prompt, self._sizes.decode_tokens) for prompt in prompts]
        replies = await asyncio.gather(*asked)
        return sum(reply.output_tokens for reply in replies) / (time.perf_counter() - started)

    def _prompt(self, num_tokens: int) -> list[int]:
        return [self._source.randrange(FIRST_ID, LAST_ID) for _ in range(num_tokens)]


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


def _slowest_gap(reply: TimedReply) -> float:
    times = reply.chunk_times
    return max((later - earlier for earlier, later in itertools.pairwise(times)), default=0.0)
