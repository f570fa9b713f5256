"""One streamed reply with the times of its chunks."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openai import AsyncOpenAI
from openai.types import CompletionUsage

ENDLESS: Mapping[str, Any] = {"ignore_eos": True}


@dataclass
class TimedReply:
    """Times are in seconds from the sending of the request."""

    chunk_times: list[float] = field(default_factory=list)
    text: str = ""
    usage: CompletionUsage | None = None

    @property
    def first_token_seconds(self) -> float:
        """Until the first chunk that carries output."""
        return self.chunk_times[0]

    @property
    def total_seconds(self) -> float:
        """Until the last chunk that carries output."""
        return self.chunk_times[-1]

    @property
    def output_tokens(self) -> int:
        """As the server counts them."""
        return 0 if self.usage is None else self.usage.completion_tokens

    @property
    def prompt_tokens(self) -> int:
        """As the server counts them."""
        return 0 if self.usage is None else self.usage.prompt_tokens

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens taken from a stored prefix."""
        details = None if self.usage is None else self.usage.prompt_tokens_details
        return 0 if details is None else details.cached_tokens or 0

    @property
    def decode_rate(self) -> float:
        """Output tokens a second after the first."""
        return (self.output_tokens - 1) / max(self.total_seconds - self.first_token_seconds, 1e-9)


@dataclass(frozen=True, slots=True)
class Server:
    """What is measured."""

    client: AsyncOpenAI
    model: str

    async def complete(self, prompt: Sequence[int], max_tokens: int) -> TimedReply:
        """Greedy completion of token ids, not ended by end tokens."""
        stream = await self.client.completions.create(
            model=self.model,
            prompt=list(prompt),
            max_tokens=max_tokens,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
            # Token ids make every token visible as a chunk, also one that ends inside a character.
            extra_body={"ignore_eos": True, "return_token_ids": True},
        )
        return await _read(stream, time.perf_counter())

    async def chat(self, messages: Sequence[Any], max_tokens: int, fields: Mapping[str, Any] = ENDLESS) -> TimedReply:
        """Greedy reply to a conversation. `fields`: further ones of the body."""
        started = time.perf_counter()
        stream = await self.client.chat.completions.create(
            model=self.model,
            messages=list(messages),
            max_tokens=max_tokens,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
            extra_body=dict(fields),
        )
        return await _read(stream, started)


async def _read(stream: Any, started: float) -> TimedReply:
    reply = TimedReply()
    async for chunk in stream:
        for choice in chunk.choices:
            text, is_output = _output_of(choice)
            reply.text += text
            if is_output:
                reply.chunk_times.append(time.perf_counter() - started)
        reply.usage = chunk.usage or reply.usage
    return reply


def _output_of(choice: Any) -> tuple[str, bool]:
    """Answer text of a chunk's choice, and whether the chunk carries output of any kind."""
    delta = getattr(choice, "delta", None)
    if delta is None:
        return choice.text, bool(choice.text or getattr(choice, "token_ids", None))
    text = delta.content or ""
    return text, bool(text or getattr(delta, "reasoning_content", None) or getattr(choice, "token_ids", None))
