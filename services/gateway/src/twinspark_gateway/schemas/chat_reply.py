"""The reply of POST /v1/chat/completions, whole and in chunks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from twinspark_gateway.reply.answer_text import PlacedLogprob
from twinspark_gateway.reply.choice import Delta, Ended, Started
from twinspark_gateway.reply.text_reader import ToolCall
from twinspark_gateway.reply.usage import Usage
from twinspark_gateway.schemas.logprobs import TokenNames, chat_logprobs


@dataclass(frozen=True, slots=True)
class ReplyHead:
    """What every object of one reply carries."""

    id: str
    created: int
    model: str
    system_fingerprint: str

    def to_json(self, kind: str) -> dict[str, Any]:
        """Give the fields; kind is the reply's `object`."""
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.system_fingerprint,
        }


@dataclass(slots=True)
class ChoiceTotal:
    """Everything that the deltas of one choice add up to."""

    reasoning: str = ""
    content: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    logprobs: list[PlacedLogprob] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    ended: Ended | None = None

    def add(self, delta: Delta) -> None:
        """Append a delta."""
        self.add_turn(delta)
        self.content += delta.content
        self.logprobs.extend(delta.logprobs)
        self.token_ids.extend(delta.token_ids)

    def add_turn(self, delta: Delta) -> None:
        """Append what is remembered of a delta that is sent on: reasoning and calls."""
        self.reasoning += delta.reasoning
        self.calls.extend(delta.calls)


@dataclass(frozen=True, slots=True)
class ChatReply:
    """Builds the objects of one chat reply."""

    head: ReplyHead
    names: TokenNames
    # reasoning, reasoning_content or both; empty where the request does not want reasoning.
    reasoning_fields: Sequence[str]
    with_logprobs: bool
    with_token_ids: bool
    # Chunks carry running counts.
    with_usage: bool
    num_choices: int = 1
    include_usage: bool = False
    # Turns of the conversation whose reasoning was put back.
    restored_turns: int = 0

    def opening_chunks(self, prompt_token_ids: Sequence[int]) -> list[dict[str, Any]]:
        """Give the first chunk of every choice."""
        return [self._role_chunk(index, prompt_token_ids) for index in range(self.num_choices)]

    def started_chunks(self, started: Started) -> list[dict[str, Any]]:
        """Give nothing: the choice is open already."""
        return []

    def _role_chunk(self, index: int, prompt_token_ids: Sequence[int]) -> dict[str, Any]:
        """Count the prompt only: the choice itself may have run on."""
        chunk = self._chunk(index, {"role": "assistant", "content": ""}, Usage(len(prompt_token_ids)))
        return chunk | ({"prompt_token_ids": list(prompt_token_ids)} if self.with_token_ids else {})

    def delta_chunks(self, delta: Delta) -> list[dict[str, Any]]:
        """Give the chunks of one step: text, then each call whole; none where it has nothing that the request wants."""
        fields: list[dict[str, Any]] = []
        text: dict[str, Any] = {}
        if delta.reasoning:
            text.update(dict.fromkeys(self.reasoning_fields, delta.reasoning))
        if delta.content:
            text["content"] = delta.content
        if text:
            fields.append(text)
        fields += [{"tool_calls": [{"index": call.index, **describe_call(call)}]} for call in delta.calls]
        has_logprobs = self.with_logprobs and bool(delta.logprobs)
        if not fields and (has_logprobs or (self.with_token_ids and delta.token_ids)):
            fields.append({})
        chunks = [self._chunk(delta.index, item, delta.usage) for item in fields]
        for position, chunk in enumerate(chunks):
            if has_logprobs and position == 0:
                chunk["choices"][0]["logprobs"] = chat_logprobs(delta.logprobs, self.names)
            if self.with_token_ids:
                chunk["choices"][0]["token_ids"] = list(delta.token_ids) if position == 0 else []
        return chunks

    def end_chunks(self, ended: Ended) -> list[dict[str, Any]]:
        """Give the last chunk of a choice."""
        chunk = self._chunk(ended.index, {}, ended.usage)
        chunk["choices"][0] |= describe_end(ended)
        return [chunk | self._timings()]

    def closing_chunks(self, usage: Usage) -> list[dict[str, Any]]:
        """Give the counts after all choices, if they were asked for."""
        if not self.include_usage:
            return []
        return [self.head.to_json("chat.completion.chunk") | {"choices": [], "usage": usage.to_json()}]

    def whole(self, totals: Sequence[ChoiceTotal], usage: Usage, prompt_token_ids: Sequence[int]) -> dict[str, Any]:
        """Give the reply that is not streamed."""
        choices = [self._whole_choice(index, total) for index, total in enumerate(totals)]
        reply = self.head.to_json("chat.completion") | {"choices": choices, "usage": usage.to_json()}
        return reply | self._timings() | ({"prompt_token_ids": list(prompt_token_ids)} if self.with_token_ids else {})

    def _timings(self) -> dict[str, Any]:
        return {"timings": {"restored_turns": self.restored_turns}} if self.restored_turns else {}

    def _whole_choice(self, index: int, total: ChoiceTotal) -> dict[str, Any]:
        content = None if total.calls and not total.content else total.content
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        if total.reasoning:
            message.update(dict.fromkeys(self.reasoning_fields, total.reasoning))
        if total.calls:
            message["tool_calls"] = [describe_call(call) for call in total.calls]
        choice: dict[str, Any] = {
            "index": index,
            "message": message,
            # As in the stream: none where the reply has no text.
            "logprobs": chat_logprobs(total.logprobs, self.names) if self.with_logprobs and total.logprobs else None,
            **describe_end(total.ended),
        }
        return choice | ({"token_ids": total.token_ids} if self.with_token_ids else {})

    def _chunk(self, index: int, delta: dict[str, Any], usage: Usage) -> dict[str, Any]:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
        chunk = self.head.to_json("chat.completion.chunk") | {"choices": [choice]}
        return chunk | ({"usage": usage.to_json()} if self.with_usage else {})


def describe_end(ended: Ended | None) -> dict[str, Any]:
    """Give the fields of a choice that say why it ended."""
    if ended is None:
        return {"finish_reason": None, "stop_reason": None}
    fields = {"finish_reason": ended.finish_reason, "stop_reason": ended.stop_reason}
    return fields if ended.schema_check is None else fields | {"schema_check": ended.schema_check}


def describe_call(call: ToolCall) -> dict[str, Any]:
    """Give the entry of `tool_calls`."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
