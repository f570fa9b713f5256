"""A reply as blocks in one order: reasoning, text, then the calls.

Calls are given when the reply ends, as text may follow one; so the blocks do not depend on how many tokens a step had.
"""

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from twinspark_gateway.reply.text_reader import ToolCall


class BlockKind(enum.Enum):
    """What a block holds."""

    REASONING = "reasoning"
    TEXT = "text"
    CALL = "call"


@dataclass(slots=True)
class Block:
    """A part of a reply."""

    # Among the blocks of the reply, from 0 on.
    index: int
    kind: BlockKind
    # So far; of a call its arguments, a JSON object.
    text: str = ""
    call: ToolCall | None = None


class BlockStep(enum.Enum):
    """What happens to a block."""

    OPENED = "opened"
    ADDED = "added"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class BlockEvent:
    """One step of one block."""

    step: BlockStep
    block: Block
    # What was added.
    text: str = ""


@dataclass(slots=True)
class Blocks:
    """The blocks of one choice; fed its deltas in order, then ended."""

    blocks: list[Block] = field(default_factory=list)
    _open: Block | None = None
    _calls: list[ToolCall] = field(default_factory=list)

    def take(self, reasoning: str, content: str, calls: Sequence[ToolCall]) -> list[BlockEvent]:
        """Take what a step added; give what happens."""
        self._calls.extend(calls)
        events: list[BlockEvent] = []
        for kind, text in ((BlockKind.REASONING, reasoning), (BlockKind.TEXT, content)):
            if text:
                events.extend(self._add(kind, text))
        return events

    def end(self) -> list[BlockEvent]:
        """End the reply; give what happens."""
        events = list(self._close())
        for call in self._calls:
            events.extend(self._add(BlockKind.CALL, call.arguments, call))
            events.extend(self._close())
        return events

    def _add(self, kind: BlockKind, text: str, call: ToolCall | None = None) -> Iterator[BlockEvent]:
        block = self._open
        if block is None or block.kind is not kind:
            yield from self._close()
            block = self._open = Block(len(self.blocks), kind, call=call)
            self.blocks.append(block)
            yield BlockEvent(BlockStep.OPENED, block)
        block.text += text
        yield BlockEvent(BlockStep.ADDED, block, text)

    def _close(self) -> Iterator[BlockEvent]:
        if self._open is not None:
            yield BlockEvent(BlockStep.CLOSED, self._open)
            self._open = None
