"""The reply of POST /v1/responses, whole and as events, both made from the same blocks."""

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from twinspark_gateway.errors import ApiError
from twinspark_gateway.reply.blocks import BlockEvent, BlockKind, Blocks, BlockStep
from twinspark_gateway.reply.choice import Delta, Ended, Started
from twinspark_gateway.reply.usage import Usage
from twinspark_gateway.schemas.chat_reply import ChoiceTotal, describe_call
from twinspark_gateway.schemas.responses.items import OutputItem


def usage_json(usage: Usage) -> dict[str, Any]:
    """Give the object `usage`."""
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }


@dataclass(slots=True)
class ResponsesReply:
    """Builds the objects of one reply; see ChatFormat."""

    model: str
    # Fields of the request that the response repeats.
    echo: Mapping[str, Any]
    # Told of the response and its chat message when it is complete, before the client is.
    on_end: Callable[[dict[str, Any], dict[str, Any]], None]
    id: str = field(default_factory=lambda: f"resp_{uuid.uuid4().hex}")
    created_at: int = field(default_factory=lambda: int(time.time()))
    _blocks: Blocks = field(default_factory=Blocks)
    _items: list[OutputItem] = field(default_factory=list)
    _numbers: "count[int]" = field(default_factory=count)
    _is_cut: bool = False

    def opening_chunks(self, prompt_token_ids: Sequence[int]) -> list[dict[str, Any]]:
        """Give the events that open the response."""
        response = self._response("in_progress", None)
        kinds = ("response.created", "response.in_progress")
        return self._number([{"type": kind, "response": response} for kind in kinds])

    def started_chunks(self, started: Started) -> list[dict[str, Any]]:
        """Give nothing: the response is open already."""
        return []

    def delta_chunks(self, delta: Delta) -> list[dict[str, Any]]:
        """Give the events of one step."""
        return self._take(self._blocks.take(delta.reasoning, delta.content, delta.calls))

    def end_chunks(self, ended: Ended) -> list[dict[str, Any]]:
        """Give the end of the last text, and the calls."""
        self._is_cut = ended.finish_reason == "length"
        return self._take(self._blocks.end())

    def closing_chunks(self, usage: Usage) -> list[dict[str, Any]]:
        """Give the last event."""
        response = self._end(usage)
        return self._number([{"type": f"response.{response['status']}", "response": response}])

    def whole(self, totals: Sequence[ChoiceTotal], usage: Usage, prompt_token_ids: Sequence[int]) -> dict[str, Any]:
        """Give the response that is not streamed."""
        (total,) = totals
        assert total.ended is not None
        self._take(self._blocks.take(total.reasoning, total.content, total.calls))
        self.end_chunks(total.ended)
        return self._end(usage)

    def failed_chunk(self, error: ApiError) -> dict[str, Any]:
        """Give the last event of a response that failed."""
        response = self._response("failed", None) | {"error": {"code": "server_error", "message": error.message}}
        return self._number([{"type": "response.failed", "response": response}])[0]

    def _end(self, usage: Usage) -> dict[str, Any]:
        response = self._response("incomplete" if self._is_cut else "completed", usage)
        self.on_end(response, self._message())
        return response

    def _take(self, events: Sequence[BlockEvent]) -> list[dict[str, Any]]:
        chunks: list[dict[str, Any]] = []
        for event in events:
            if event.step is BlockStep.OPENED:
                self._items.append(OutputItem(event.block))
                chunks += self._items[-1].opening_events()
            elif event.step is BlockStep.ADDED:
                chunks.append(self._items[-1].delta_event(event.text))
            else:
                chunks += self._items[-1].closing_events(self._status(self._items[-1]))
        return self._number(chunks)

    def _status(self, item: OutputItem) -> str:
        """Give the status of an item that is closed; the last text is what a limit cut."""
        texts = [other for other in self._items if other.block.kind is not BlockKind.CALL]
        return "incomplete" if self._is_cut and texts and item is texts[-1] else "completed"

    def _number(self, chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**chunk, "sequence_number": next(self._numbers)} for chunk in chunks]

    def _response(self, status: str, usage: Usage | None) -> dict[str, Any]:
        is_over = status in ("completed", "incomplete")
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created_at,
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "model": self.model,
            "output": [item.to_json(self._status(item)) for item in self._items] if is_over else [],
            "truncation": "disabled",
            **self.echo,
            "usage": usage_json(usage) if usage is not None else None,
        }

    def _message(self) -> dict[str, Any]:
        """Give the reply as a message of a chat request."""
        texts = dict.fromkeys(BlockKind, "")
        for block in self._blocks.blocks:
            texts[block.kind] += block.text
        message: dict[str, Any] = {"role": "assistant", "content": texts[BlockKind.TEXT]}
        if texts[BlockKind.REASONING]:
            message["reasoning_content"] = texts[BlockKind.REASONING]
        calls = [describe_call(block.call) for block in self._blocks.blocks if block.call is not None]
        return message | ({"tool_calls": calls} if calls else {})


def count_bytes(*values: Any) -> int:
    """Give the bytes of values as JSON."""
    return sum(len(json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass")) for value in values)
