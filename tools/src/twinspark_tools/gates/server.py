"""The server that the gates look at, through its HTTP API alone."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openai import AsyncOpenAI
from prometheus_client.parser import text_string_to_metric_families

from twinspark_tools.gates.replies import Reply, ReplyParts

GREEDY: Mapping[str, Any] = {"temperature": 0}
NUM_TOP_LOGPROBS = 2
"""Most likely ids beside each token's own, where the server gives so many."""
REQUEST_SECONDS = 600.0


class NotDescribedError(Exception):
    """/v1/models does not say what the gates must know; the message is for a person."""


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What /v1/models says of the served model and of its engine."""

    model: str
    fingerprint: str
    """Names everything that output bits depend on."""
    context_length: int
    """Prompt and output tokens of a request at most."""
    vocabulary_size: int
    max_top_logprobs: int
    slots: int
    """Requests that run at once."""
    block_tokens: int
    pool_tokens: int
    """Positions that share one key of the indexer."""
    chunk_tokens_alone: int
    """Prompt tokens of one step, where nobody else waits for it."""
    chunk_tokens_beside_decoders: int
    """Tokens of long prompts in one step otherwise."""
    short_prompt_tokens: int
    """Longer prompts are long ones."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One completion: a prompt of token ids that is not ended by end tokens, with log probabilities."""

    prompt: Sequence[int]
    max_tokens: int = 16
    sampling: Mapping[str, Any] = field(default_factory=lambda: GREEDY)
    """Body fields: temperature, seed, penalties, logit_bias and the like."""
    echo: bool = False
    """Log probabilities of the prompt's tokens too."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server. Every method raises openai.APIError for an answer that is an error."""

    client: AsyncOpenAI
    base_url: str
    """Without /v1."""
    info: ServerInfo
    records: Path
    """Folder of what earlier runs recorded."""

    async def complete(self, ask: Ask) -> Reply:
        """The whole reply to one ask."""
        return (await self.complete_group(ask, [ask.prompt]))[0]

    async def complete_group(self, ask: Ask, prompts: Sequence[Sequence[int]]) -> list[Reply]:
        """Replies to several prompts of one request, which therefore arrive together; ask.prompt is not sent."""
        body = self._body(ask) | {"prompt": [list(prompt) for prompt in prompts]}
        completion = await self.client.completions.create(**body)
        replies = [ReplyParts() for _ in prompts]
        for choice in completion.choices:
            replies[choice.index].add(choice)
        return [reply.build() for reply in replies]

    async def stream(self, ask: Ask) -> AsyncGenerator[Any, None]:
        """The choice of each event of a streamed reply; closing the iterator leaves the request."""
        stream: Any = await self.client.completions.create(**self._body(ask), stream=True)
        async with stream:
            async for chunk in stream:
                for choice in chunk.choices:
                    yield choice

    async def leave_in_prompt(self, ask: Ask) -> None:
        """Begin a streamed reply and leave at its headers: the request has its slot, and no token yet."""
        stream: Any = await self.client.completions.create(**self._body(ask), stream=True)
        await stream.close()

    async def metrics(self) -> dict[str, float]:
        """Samples of /metrics by name, with their labels' values behind a colon: name:label_value:label_value."""
        text = await self.client.get(f"{self.base_url}/metrics", cast_to=str)
        return {
            ":".join([sample.name, *sample.labels.values()]): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def _body(self, ask: Ask) -> dict[str, Any]:
        extra = {"ignore_eos": True, "return_token_ids": True, **ask.sampling}
        return {
            "model": self.info.model,
            "prompt": list(ask.prompt),
            "max_tokens": ask.max_tokens,
            "logprobs": min(NUM_TOP_LOGPROBS, self.info.max_top_logprobs),
            "echo": ask.echo,
            "extra_body": extra,
        }


@asynccontextmanager
async def open_server(base_url: str, api_key: str, records: Path) -> AsyncIterator[Server]:
    """The server at an address without /v1, described. Raises NotDescribedError, openai.APIError."""
    async with AsyncOpenAI(
        base_url=f"{base_url}/v1", api_key=api_key, max_retries=0, timeout=REQUEST_SECONDS
    ) as client:
        yield Server(client, base_url, await _describe(client), records)


async def _describe(client: AsyncOpenAI) -> ServerInfo:
    try:
        served = (await client.models.list()).data[0]
        said = served.model_extra or {}
        return ServerInfo(served.id, said["system_fingerprint"], said["context_length"], **said["engine"])
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise NotDescribedError(
            "/v1/models does not describe the engine: it is not reached yet, of another release, or no server of ours"
        ) from error
