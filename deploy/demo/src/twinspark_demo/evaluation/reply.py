"""Reply: what the server said, read from a chat message."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_CALL_MARKUP = "<tool_call>"


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A call in a reply; `broken`: it has no proper form."""

    name: str
    arguments: Mapping[str, Any]
    broken: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """The visible answer, without reasoning and calls."""

    content: str
    calls: tuple[ParsedCall, ...] = ()


def read_message(content: str, calls: Sequence[tuple[str, str]]) -> Reply:
    """Read a message and its calls: (name, arguments as JSON). A call that no server can read stands in the content."""
    parsed = [_read_call(name, arguments) for name, arguments in calls]
    if _CALL_MARKUP in content:
        parsed.append(ParsedCall("", {}, broken=True))
    return Reply(content, tuple(parsed))


def _read_call(name: str, arguments: str) -> ParsedCall:
    try:
        values = json.loads(arguments)
    except ValueError:
        values = None
    return ParsedCall(name, values) if isinstance(values, dict) else ParsedCall(name, {}, broken=True)
