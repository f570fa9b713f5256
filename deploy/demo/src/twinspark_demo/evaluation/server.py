"""A running server through the openai client: one prompt in, one answer out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import openai
from jinja2 import Template
from openai import AsyncOpenAI

from twinspark_demo.evaluation.answer import Answer
from twinspark_demo.evaluation.prompt import Message, Prompt
from twinspark_demo.evaluation.reply import Reply, read_completion
from twinspark_demo.evaluation.template import render

MAX_TOKENS = 1_536
"""More than the longest right reply needs; a reply that runs on ends here and is wrong."""

Sampling = Mapping[str, int]
"""temperature 0 for greedy; a seed alone for the folder's own settings."""


def root_address(base_url: str) -> str:
    """The address http://HOST:PORT without a /v1 or slash behind it; ValueError if it is no such address."""
    try:
        parts = urlsplit(base_url)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, or half an IPv6 address
        is_address = False
    if not is_address:
        raise ValueError(f"--base-url {base_url}: http://HOST:PORT is needed, for example http://127.0.0.1:8000")
    return base_url.rstrip("/").removesuffix("/v1").rstrip("/")


@dataclass(slots=True)
class Server:
    """Asks; never raises for what the server answers, which becomes the answer's `error`."""

    client: AsyncOpenAI
    model: str
    template: Template | None
    """The served folder's; needed for prompts with tools."""

    async def answer(self, prompt: Prompt, sampling: Sampling) -> Answer:
        """Run the whole conversation of a prompt."""
        try:
            if prompt.tools:
                return await self._complete(prompt, sampling)
            return await self._chat(prompt, sampling)
        except openai.APIStatusError as error:
            return Answer(error=f"answered {error.status_code}: {error.message}", is_failed_request=True)
        except openai.OpenAIError as error:
            return Answer(error=f"{type(error).__name__}: {error}", is_failed_request=True)

    async def is_ready(self) -> bool:
        """False where /health says that no request would be taken; a server without /health is asked."""
        try:
            await self.client.get(f"{root_address(str(self.client.base_url))}/health", cast_to=object)
        except openai.NotFoundError:
            return True
        except openai.APIStatusError:
            return False
        return True

    async def count_tokens(self, text: str) -> int | None:
        """Tokens of a text; None where the server has no /tokenize."""
        ids = await self._tokenize({"prompt": text, "add_special_tokens": False})
        return None if ids is None else len(ids)

    async def renders_alike(self, messages: Sequence[Message]) -> bool:
        """Whether the server makes the same prompt of a conversation as this program's template; True if it is mute."""
        if self.template is None:
            return True
        theirs = await self._tokenize({"messages": list(messages)})
        ours = await self._tokenize({"prompt": render(self.template, messages), "add_special_tokens": False})
        return theirs == ours

    async def _tokenize(self, body: Mapping[str, Any]) -> list[int] | None:
        try:
            found: Any = await self.client.post("/tokenize", cast_to=object, body={"model": self.model, **body})
        except openai.NotFoundError:
            return None
        ids: list[int] = found["tokens"]
        return ids

    async def _chat(self, prompt: Prompt, sampling: Sampling) -> Answer:
        messages: list[Any] = list(prompt.messages)
        turns = _Turns()
        for text in (*prompt.later_turns, None):
            given = await self.client.chat.completions.create(
                model=self.model, messages=messages, max_tokens=MAX_TOKENS, **_fields(sampling)
            )
            choice = given.choices[0]
            turns.add(given.usage, choice.finish_reason)
            message = choice.message
            content, reasoning = message.content or "", _reasoning_of(message)
            if text is None:
                return turns.end(Reply(content), content, reasoning)
            kept = {"reasoning_content": reasoning} if prompt.sends_reasoning else {}
            messages += [{"role": "assistant", "content": content, **kept}, {"role": "user", "content": text}]
        raise AssertionError("the last turn returns")

    async def _complete(self, prompt: Prompt, sampling: Sampling) -> Answer:
        if self.template is None:
            raise ValueError("prompts with tools need the chat template")
        given = await self.client.completions.create(
            model=self.model,
            prompt=render(self.template, prompt.messages, prompt.tools),
            max_tokens=MAX_TOKENS,
            **_fields(sampling),
        )
        choice, turns = given.choices[0], _Turns()
        turns.add(given.usage, choice.finish_reason)
        return turns.end(read_completion(choice.text, prompt.tools), choice.text, "")


@dataclass(slots=True)
class _Turns:
    """Counts of a conversation, and how its replies ended."""

    prompt_tokens: int = 0
    output_tokens: int = 0
    reasons: list[str] = field(default_factory=list)

    def add(self, usage: Any, finish_reason: str) -> None:
        if usage is not None:
            self.prompt_tokens = usage.prompt_tokens
            self.output_tokens += usage.completion_tokens
        self.reasons.append(finish_reason)

    def end(self, reply: Reply, text: str, reasoning: str) -> Answer:
        other = next((reason for reason in self.reasons if reason != "stop"), None)
        error = "" if other is None else f"finish_reason is {other}"
        return Answer(reply, text, reasoning, self.prompt_tokens, self.output_tokens, error)


def _fields(sampling: Sampling) -> dict[str, Any]:
    return dict(sampling)


def _reasoning_of(message: Any) -> str:
    """The gateway can be set to either name."""
    return getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None) or ""
