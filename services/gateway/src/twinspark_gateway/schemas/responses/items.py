"""Output items of the Responses API and the events of one, both made from a block of the reply."""

import uuid
from dataclasses import dataclass, field
from typing import Any

from twinspark_gateway.reply.blocks import Block, BlockKind

_PREFIXES = {BlockKind.REASONING: "rs", BlockKind.TEXT: "msg", BlockKind.CALL: "fc"}
# First part of the names of events that tell the text of a block.
_TEXT_EVENTS = {
    BlockKind.REASONING: "response.reasoning_text",
    BlockKind.TEXT: "response.output_text",
    BlockKind.CALL: "response.function_call_arguments",
}


@dataclass(frozen=True, slots=True)
class OutputItem:
    """One item, which grows with its block."""

    block: Block
    id: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", f"{_PREFIXES[self.block.kind]}_{uuid.uuid4().hex}")

    def to_json(self, status: str) -> dict[str, Any]:
        """Give the item; in progress it has no text yet."""
        item: dict[str, Any] = {"id": self.id, "status": status}
        text = "" if status == "in_progress" else self.block.text
        if self.block.kind is BlockKind.CALL:
            call = self.block.call
            assert call is not None
            return item | {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": text}
        content = [] if status == "in_progress" else [self._part(text)]
        if self.block.kind is BlockKind.REASONING:
            return item | {"type": "reasoning", "summary": [], "content": content}
        return item | {"type": "message", "role": "assistant", "content": content}

    def opening_events(self) -> list[dict[str, Any]]:
        """Give the events that open the item."""
        added = {
            "type": "response.output_item.added",
            "output_index": self.block.index,
            "item": self.to_json("in_progress"),
        }
        if self.block.kind is BlockKind.CALL:
            return [added]
        return [added, {"type": "response.content_part.added", **self._part_place(), "part": self._part("")}]

    def delta_event(self, text: str) -> dict[str, Any]:
        """Give the event of added text."""
        event = {"type": f"{_TEXT_EVENTS[self.block.kind]}.delta", **self._part_place(), "delta": text}
        return event | self._logprobs()

    def closing_events(self, status: str) -> list[dict[str, Any]]:
        """Give the events that close the item."""
        text = self.block.text
        done = {"type": f"{_TEXT_EVENTS[self.block.kind]}.done", **self._part_place()}
        item = {
            "type": "response.output_item.done",
            "output_index": self.block.index,
            "item": self.to_json(status),
        }
        if self.block.call is not None:
            return [done | {"name": self.block.call.name, "arguments": text}, item]
        part = {"type": "response.content_part.done", **self._part_place(), "part": self._part(text)}
        return [done | {"text": text} | self._logprobs(), part, item]

    def _part_place(self) -> dict[str, Any]:
        place = {"item_id": self.id, "output_index": self.block.index}
        return place if self.block.kind is BlockKind.CALL else place | {"content_index": 0}

    def _part(self, text: str) -> dict[str, Any]:
        if self.block.kind is BlockKind.REASONING:
            return {"type": "reasoning_text", "text": text}
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}

    def _logprobs(self) -> dict[str, Any]:
        return {"logprobs": []} if self.block.kind is BlockKind.TEXT else {}
