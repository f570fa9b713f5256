"""Reply: what the server said, read from a chat message or from the raw text of a completion."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_PAIR = re.compile(r"<arg_key>(.*?)</arg_key><arg_value>(.*?)</arg_value>", re.DOTALL)
_MARKUP = re.compile(r"</?(?:tool_call|arg_key|arg_value)>")


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A call in a reply. Arguments of a type other than string are JSON values; `broken`: it has no proper form."""

    name: str
    arguments: Mapping[str, Any]
    broken: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """The visible answer, without reasoning and calls."""

    content: str
    calls: tuple[ParsedCall, ...] = ()


def read_completion(text: str, tools: Sequence[Mapping[str, Any]]) -> Reply:
    """Read the raw continuation of a prompt that ends inside the reasoning; without its end there is no answer."""
    _, _, answer = text.partition("</think>")
    calls = tuple(_read_call(match, tools) for match in _CALL.finditer(answer))
    return Reply(_CALL.sub("", answer), calls)


def _read_call(match: re.Match[str], tools: Sequence[Mapping[str, Any]]) -> ParsedCall:
    """The name runs up to the first argument; a value ends at the first end tag."""
    name, separator, rest = match[1].partition("<arg_key>")
    pairs = separator + rest
    found = _PAIR.findall(pairs)
    keys = [key for key, _ in found]
    is_whole = match[0].endswith("</tool_call>") and not _PAIR.sub("", pairs) and len(set(keys)) == len(keys)
    has_stray_markup = any(map(_MARKUP.search, (name, *keys)))
    types = _types_of(name, tools)
    arguments = {key: _read_value(value, types.get(key)) for key, value in found}
    return ParsedCall(name, arguments, broken=not is_whole or has_stray_markup)


def _types_of(name: str, tools: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
    for tool in tools:
        if tool["function"]["name"] == name:
            properties = tool["function"]["parameters"]["properties"]
            return {key: schema["type"] for key, schema in properties.items()}
    return {}


def _read_value(text: str, kind: str | None) -> Any:
    """Strings as they stand, other types as JSON; what is no JSON stays a string and so equals no number."""
    if kind in (None, "string"):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
