"""The reply of POST /v1/messages, whole and as events, both made from the same blocks."""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from twinspark_gateway.errors import anthropic_body
from twinspark_gateway.reply.blocks import Block, BlockEvent, BlockKind, Blocks, BlockStep
from twinspark_gateway.reply.choice import Delta, Ended, Started
from twinspark_gateway.reply.usage import Usage
from twinspark_gateway.schemas.chat_reply import ChoiceTotal
from twinspark_gateway.web.event_stream import EventForm

_REASONS = {"length": "max_tokens", "tool_calls": "tool_use"}


EVENTS = EventForm(anthropic_body, is_named=True)


def usage_json(usage: Usage) -> dict[str, Any]:
    """Give the object `usage`: its input_tokens are those that were not cached."""
    return {
        "input_tokens": usage.prompt_tokens - usage.cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
    }


@dataclass(frozen=True, slots=True)
class MessagesReply:
    """Builds the objects of one reply; see ChatFormat."""

    model: str
    id: str = field(default_factory=lambda: f"msg_{uuid.uuid4().hex}")
    _blocks: Blocks = field(default_factory=Blocks)

    def opening_chunks(self, prompt_token_ids: Sequence[int]) -> list[dict[str, Any]]:
        """Give nothing: the first event tells how much of the prompt was cached."""
        return []

    def started_chunks(self, started: Started) -> list[dict[str, Any]]:
        """Give the event that opens the message."""
        message = self._message([], None, None, Usage(started.usage.prompt_tokens, 0, started.usage.cached_tokens))
        return [{"type": "message_start", "message": message}, {"type": "ping"}]

    def delta_chunks(self, delta: Delta) -> list[dict[str, Any]]:
        """Give the events of one step."""
        return _block_chunks(self._blocks.take(delta.reasoning, delta.content, delta.calls))

    def end_chunks(self, ended: Ended) -> list[dict[str, Any]]:
        """Give the calls, and how the message ended."""
        reason, stop = _stop_of(ended)
        delta = {"stop_reason": reason, "stop_sequence": stop}
        end = {"type": "message_delta", "delta": delta, "usage": usage_json(ended.usage)}
        return [*_block_chunks(self._blocks.end()), end]

    def closing_chunks(self, usage: Usage) -> list[dict[str, Any]]:
        """Give the last event."""
        return [{"type": "message_stop"}]

    def whole(self, totals: Sequence[ChoiceTotal], usage: Usage, prompt_token_ids: Sequence[int]) -> dict[str, Any]:
        """Give the message that is not streamed."""
        (total,) = totals
        assert total.ended is not None
        self._blocks.take(total.reasoning, total.content, total.calls)
        self._blocks.end()
        content = [_content(block, is_whole=True) for block in self._blocks.blocks]
        return self._message(content, *_stop_of(total.ended), usage)

    def _message(
        self, content: list[dict[str, Any]], reason: str | None, stop: str | None, usage: Usage
    ) -> dict[str, Any]:
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": reason,
            "stop_sequence": stop,
            "usage": usage_json(usage),
        }


def _stop_of(ended: Ended) -> tuple[str, str | None]:
    """Give (stop_reason, stop_sequence)."""
    if ended.finish_reason == "stop" and isinstance(ended.stop_reason, str):
        return "stop_sequence", ended.stop_reason
    return _REASONS.get(ended.finish_reason, "end_turn"), None


def _block_chunks(events: Sequence[BlockEvent]) -> list[dict[str, Any]]:
    return [chunk for event in events for chunk in _chunks_of(event)]


def _chunks_of(event: BlockEvent) -> list[dict[str, Any]]:
    block = event.block
    place = {"index": block.index}
    if event.step is BlockStep.OPENED:
        return [{"type": "content_block_start", **place, "content_block": _content(block, is_whole=False)}]
    if event.step is BlockStep.ADDED:
        return [{"type": "content_block_delta", **place, "delta": _delta(block.kind, event.text)}]
    stop = {"type": "content_block_stop", **place}
    if block.kind is BlockKind.REASONING:
        signature = {"type": "signature_delta", "signature": ""}
        return [{"type": "content_block_delta", **place, "delta": signature}, stop]
    return [stop]


def _delta(kind: BlockKind, text: str) -> dict[str, Any]:
    if kind is BlockKind.REASONING:
        return {"type": "thinking_delta", "thinking": text}
    if kind is BlockKind.TEXT:
        return {"type": "text_delta", "text": text}
    return {"type": "input_json_delta", "partial_json": text}


def _content(block: Block, *, is_whole: bool) -> dict[str, Any]:
    """Give a block of `content`, or what it is opened with."""
    text = block.text if is_whole else ""
    if block.kind is BlockKind.REASONING:
        return {"type": "thinking", "thinking": text, "signature": ""}
    if block.kind is BlockKind.TEXT:
        return {"type": "text", "text": text}
    assert block.call is not None
    return {"type": "tool_use", "id": block.call.id, "name": block.call.name, "input": json.loads(text or "{}")}
