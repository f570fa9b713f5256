"""A running server through the openai client: one prompt in, one answer out."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import openai
from openai import AsyncOpenAI

from twinspark_demo.evaluation.answer import Answer
from twinspark_demo.evaluation.checkers import tool_calls
from twinspark_demo.evaluation.prompt import Message, Prompt
from twinspark_demo.evaluation.reply import Reply, read_message

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

    async def answer(self, prompt: Prompt, sampling: Sampling) -> Answer:
        """Run the whole conversation of a prompt."""
        try:
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
        body = {"model": self.model, "prompt": text, "add_special_tokens": False}
        try:
            found: Any = await self.client.post("/tokenize", cast_to=object, body=body)
        except openai.NotFoundError:
            return None
        return len(found["tokens"])

    async def _chat(self, prompt: Prompt, sampling: Sampling) -> Answer:
        messages: list[Any] = [_as_sent(message) for message in prompt.messages]
        fields: dict[str, Any] = {**sampling, **({"tools": prompt.tools} if prompt.tools else {}), **prompt.fields}
        turns = _Turns()
        for following in (*prompt.later_turns, *prompt.tool_steps, None):
            given = await self.client.chat.completions.create(
                model=self.model, messages=messages, max_tokens=MAX_TOKENS, **fields
            )
            choice = given.choices[0]
            turns.add(given.usage, choice.finish_reason)
            message = choice.message
            content, reasoning = message.content or "", _reasoning_of(message)
            calls = _calls_of(message)
            reply, text = _read(prompt, content, calls), _as_text(content, calls)
            if following is None:
                return turns.end(reply, text, reasoning)
            kept = {"reasoning_content": reasoning} if prompt.sends_reasoning else {}
            said = {"role": "assistant", "content": content, **kept}
            if isinstance(following, str):
                messages += [said, {"role": "user", "content": following}]
            elif tool_calls.is_right(following.calls, reply):
                messages += [{**said, "tool_calls": [_as_part(call) for call in message.tool_calls or ()]}]
                messages += _results(message.tool_calls or (), following.results)
            else:
                return replace(turns.end(reply, text, reasoning), error="the calls before the last reply are others")
        raise AssertionError("the last turn returns")


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
        other = next((reason for reason in self.reasons if reason not in ("stop", "tool_calls")), None)
        error = "" if other is None else f"finish_reason is {other}"
        return Answer(reply, text, reasoning, self.prompt_tokens, self.output_tokens, error)


def _as_sent(message: Message) -> Message:
    """A message in the form of the chat API: arguments as JSON."""
    calls = [
        {**call, "function": {**call["function"], "arguments": json.dumps(call["function"]["arguments"])}}
        for call in message.get("tool_calls", ())
    ]
    return {**message, "tool_calls": calls} if calls else message


def _calls_of(message: Any) -> list[tuple[str, str]]:
    """Name and arguments, as JSON, of each call."""
    return [
        (call.function.name, call.function.arguments) for call in message.tool_calls or () if call.type == "function"
    ]


def _as_part(call: Any) -> dict[str, Any]:
    part: dict[str, Any] = call.model_dump(mode="json", exclude_none=True)
    return part


def _results(calls: Sequence[Any], results: Sequence[str]) -> list[dict[str, Any]]:
    """Messages with what the calls return."""
    return [
        {"role": "tool", "tool_call_id": call.id, "content": result}
        for call, result in zip(calls, results, strict=True)
    ]


def _read(prompt: Prompt, content: str, calls: Sequence[tuple[str, str]]) -> Reply:
    return read_message(content, calls) if prompt.tools else Reply(content)


def _as_text(content: str, calls: Sequence[tuple[str, str]]) -> str:
    return content + "".join(f"[{name} {arguments}]" for name, arguments in calls)


def _reasoning_of(message: Any) -> str:
    """The gateway can be set to either name."""
    return getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None) or ""
