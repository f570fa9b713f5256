"""One block of call markup, token by token: where it ends, and which call it is.

Position decides what a tag means: inside a value every tag is data, but for the `</arg_value>` that is followed by
`<arg_key>` or `</tool_call>`, with nothing but blanks between.
"""

import enum
import json
from typing import Any

from twinspark_gateway.tools.offer import Tool, ToolOffer
from twinspark_gateway.tools.tags import ToolTag
from twinspark_gateway.tools.values import read_value


class Step(enum.Enum):
    """What a token did to the block."""

    INSIDE = "inside"
    # The token is the block's last.
    CLOSED = "closed"
    # The token opens another block; this one has ended without a closing tag.
    REOPENED = "reopened"


class _Place(enum.Enum):
    NAME = "name"
    KEY = "key"
    AFTER_KEY = "after a key"
    VALUE = "value"
    AFTER_VALUE = "after what may be the end of a value"
    JUNK = "no call"


class CallBlock:
    """Fed everything after `<tool_call>`, in order. A block that turned out to be no call is followed to its end."""

    def __init__(self, offer: ToolOffer) -> None:
        self._offer = offer
        self._place = _Place.NAME
        self._name = ""
        self._tool: Tool | None = None
        # Of the key or value that is being read.
        self._parts: list[str] = []
        self._key = ""
        # The `</arg_value>` that may have ended the value, and the blanks after it.
        self._tail: list[str] = []
        self._arguments: dict[str, str] = {}
        self.may_be_call = True

    def take(self, tag: ToolTag | None, text: str) -> Step:
        """Take the next token: a tag, or None for ordinary text."""
        match self._place:
            case _Place.NAME:
                return self._take_in_name(tag, text)
            case _Place.KEY:
                return self._take_in_key(tag, text)
            case _Place.VALUE:
                return self._take_in_value(tag, text)
            case _Place.AFTER_VALUE:
                return self._take_after_value(tag, text)
            case _:
                return self._take_between(tag, text)

    def try_build(self) -> tuple[str, str] | None:
        """Give name and arguments (a JSON object) of a block that was closed; None if it is no call."""
        if not self.may_be_call or self._tool is None:
            return None
        return self._tool.name, _to_json(self._tool, self._arguments)

    def try_close(self) -> tuple[str, str] | None:
        """Give the call of a block that lacks nothing but its closing tag; None if it lacks more.

        An open value is never closed, and every required argument must be there.
        """
        if self._place is _Place.NAME:
            self._settle_name()
        elif self._place is _Place.AFTER_VALUE:
            self._settle_value()
        else:
            return None
        if self._tool is None or not self._tool.required <= self._arguments.keys():
            return None
        return self.try_build()

    def _take_in_name(self, tag: ToolTag | None, text: str) -> Step:
        if tag is None:
            if self.may_be_call:
                self._name += text
                self.may_be_call = self._offer.may_begin(self._name)
            return Step.INSIDE
        if tag in (ToolTag.KEY_OPEN, ToolTag.CALL_CLOSE):
            self._settle_name()
        elif tag is ToolTag.KEY_CLOSE:
            found = self._offer.match_with_key(self._name) if self.may_be_call else None
            if found is not None:
                self._tool, self._key = found
                self._place = _Place.AFTER_KEY
                return Step.INSIDE
        return self._move(tag, at_key=tag is ToolTag.KEY_OPEN)

    def _take_in_key(self, tag: ToolTag | None, text: str) -> Step:
        if tag is None:
            self._parts.append(text)
            return Step.INSIDE
        if tag is not ToolTag.KEY_CLOSE:
            return self._reject(tag)
        self._key = "".join(self._parts).strip()
        self.may_be_call = self.may_be_call and bool(self._key)
        self._place = _Place.AFTER_KEY
        return Step.INSIDE

    def _take_between(self, tag: ToolTag | None, text: str) -> Step:
        """After a key, where only a value may follow; and in what is no call any more, where anything may."""
        if tag is None and not text.strip():
            return Step.INSIDE
        if tag is not ToolTag.VALUE_OPEN:
            return self._reject(tag)
        self._parts, self._place = [], _Place.VALUE
        return Step.INSIDE

    def _take_in_value(self, tag: ToolTag | None, text: str) -> Step:
        if tag is ToolTag.VALUE_CLOSE:
            self._tail, self._place = [text], _Place.AFTER_VALUE
        else:
            self._parts.append(text)
        return Step.INSIDE

    def _take_after_value(self, tag: ToolTag | None, text: str) -> Step:
        if tag in (ToolTag.KEY_OPEN, ToolTag.CALL_CLOSE):
            self._settle_value()
            return self._move(tag, at_key=tag is ToolTag.KEY_OPEN)
        if tag is None and not text.strip():
            self._tail.append(text)
            return Step.INSIDE
        self._parts += self._tail
        self._place = _Place.VALUE
        return self._take_in_value(tag, text)

    def _settle_name(self) -> None:
        self._tool = self._offer.match(self._name.strip()) if self.may_be_call else None
        self.may_be_call = self._tool is not None

    def _settle_value(self) -> None:
        self._arguments[self._key] = "".join(self._parts)

    def _move(self, tag: ToolTag | None, *, at_key: bool) -> Step:
        if at_key:
            self._parts, self._place = [], _Place.KEY
            return Step.INSIDE
        return Step.CLOSED if tag is ToolTag.CALL_CLOSE else self._reject(tag)

    def _reject(self, tag: ToolTag | None) -> Step:
        """Note that this is no call; a value that opens here is still followed to its end, as its tags are data."""
        self.may_be_call = False
        self._place = _Place.JUNK
        match tag:
            case ToolTag.CALL_OPEN:
                return Step.REOPENED
            case ToolTag.CALL_CLOSE:
                return Step.CLOSED
            case ToolTag.VALUE_OPEN:
                self._parts, self._place = [], _Place.VALUE
        return Step.INSIDE


def _to_json(tool: Tool, arguments: dict[str, str]) -> str:
    """Give the arguments as one JSON object, keys in the order in which they were written."""
    properties = tool.properties
    typed: dict[str, Any] = {
        key: read_value(text, properties.get(key), tool.parameters) for key, text in arguments.items()
    }
    text = json.dumps(typed, ensure_ascii=False, separators=(",", ":"))
    # JSON may spell half a surrogate pair, which has no UTF-8.
    return text if not any("\ud800" <= char <= "\udfff" for char in text) else json.dumps(typed, separators=(",", ":"))
