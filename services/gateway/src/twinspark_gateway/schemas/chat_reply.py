"""The reply of POST /v1/chat/completions, whole and in chunks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from twinspark_gateway.reply.answer_text import PlacedLogprob
from twinspark_gateway.reply.choice import Delta, Ended
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
    logprobs: list[PlacedLogprob] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    ended: Ended | None = None

    def add(self, delta: Delta) -> None:
        """Append a delta."""
        self.reasoning += delta.reasoning
        self.content += delta.content
        self.logprobs.extend(delta.logprobs)
        self.token_ids.extend(delta.token_ids)


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

    def role_chunk(self, index: int, prompt_token_ids: Sequence[int]) -> dict[str, Any]:
        """Give the first chunk of a choice, which counts the prompt only: the choice itself may have run on."""
        chunk = self._chunk(index, {"role": "assistant", "content": ""}, Usage(len(prompt_token_ids)))
        return chunk | ({"prompt_token_ids": list(prompt_token_ids)} if self.with_token_ids else {})

    def delta_chunk(self, delta: Delta) -> dict[str, Any] | None:
        """Give the chunk of one step; None where it has nothing that the request wants."""
        fields: dict[str, Any] = {}
        if delta.reasoning:
            fields.update(dict.fromkeys(self.reasoning_fields, delta.reasoning))
        if delta.content:
            fields["content"] = delta.content
        wants_ids = self.with_token_ids and bool(delta.token_ids)
        if not fields and not (self.with_logprobs and delta.logprobs) and not wants_ids:
            return None
        chunk = self._chunk(delta.index, fields, delta.usage)
        if self.with_logprobs:
            chunk["choices"][0]["logprobs"] = chat_logprobs(delta.logprobs, self.names) if delta.logprobs else None
        if self.with_token_ids:
            chunk["choices"][0]["token_ids"] = list(delta.token_ids)
        return chunk

    def finish_chunk(self, ended: Ended) -> dict[str, Any]:
        """Give the last chunk of a choice."""
        chunk = self._chunk(ended.index, {}, ended.usage)
        chunk["choices"][0] |= {"finish_reason": ended.finish_reason, "stop_reason": ended.stop_reason}
        return chunk

    def usage_chunk(self, usage: Usage) -> dict[str, Any]:
        """Give the chunk after all choices."""
        return self.head.to_json("chat.completion.chunk") | {"choices": [], "usage": usage.to_json()}

    def whole(self, totals: Sequence[ChoiceTotal], usage: Usage, prompt_token_ids: Sequence[int]) -> dict[str, Any]:
        """Give the reply that is not streamed."""
        choices = [self._whole_choice(index, total) for index, total in enumerate(totals)]
        reply = self.head.to_json("chat.completion") | {"choices": choices, "usage": usage.to_json()}
        return reply | ({"prompt_token_ids": list(prompt_token_ids)} if self.with_token_ids else {})

    def _whole_choice(self, index: int, total: ChoiceTotal) -> dict[str, Any]:
        message = {"role": "assistant", "content": total.content, "refusal": None}
        if total.reasoning:
            message.update(dict.fromkeys(self.reasoning_fields, total.reasoning))
        choice: dict[str, Any] = {
            "index": index,
            "message": message,
            "logprobs": chat_logprobs(total.logprobs, self.names) if self.with_logprobs else None,
            "finish_reason": total.ended.finish_reason if total.ended is not None else None,
            "stop_reason": total.ended.stop_reason if total.ended is not None else None,
        }
        return choice | ({"token_ids": total.token_ids} if self.with_token_ids else {})

    def _chunk(self, index: int, delta: dict[str, Any], usage: Usage) -> dict[str, Any]:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
        chunk = self.head.to_json("chat.completion.chunk") | {"choices": [choice]}
        return chunk | ({"usage": usage.to_json()} if self.with_usage else {})
