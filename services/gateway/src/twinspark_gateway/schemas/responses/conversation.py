"""Translates `input` of the Responses API to the messages of a chat request."""

from collections.abc import Mapping
from typing import Any

from twinspark_gateway.schemas.fields import name_at, not_served_at, refuse, refuse_at, show, string_at

Message = dict[str, Any]
_ROLES = ("user", "assistant", "system", "developer")
_TEXT_PARTS = frozenset({"input_text", "output_text", "text"})
_NOT_SERVED_PARTS = frozenset({"input_image", "input_file", "input_audio"})


def translate_input(value: Any) -> list[Message]:
    """Give the messages of the chat request. Raises a 400 that names the place in the caller's body."""
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if not isinstance(value, list) or not value:
        raise refuse("input", value, "a string or a non-empty list of items")
    messages: list[Message] = []
    for i, item in enumerate(value):
        _add_item(messages, item, f"input[{i}]")
    return messages


def _add_item(messages: list[Message], item: Any, where: str) -> None:
    if not isinstance(item, dict):
        raise refuse_at(where, f"must be an object (got {show(item)})")
    match item.get("type", "message"):
        case "message":
            _add_message(messages, item, where)
        case "reasoning":
            _add_reasoning(messages, item, where)
        case "function_call":
            _turn(messages).setdefault("tool_calls", []).append(_read_call(item, where))
        case "function_call_output":
            output = _read_parts(item.get("output"), f"{where}.output")
            messages.append({"role": "tool", "tool_call_id": string_at(item, "call_id", where), "content": output})
        case str(kind):
            raise not_served_at(where, f": items of type '{kind[:60]}' are not read")
        case kind:
            raise refuse_at(f"{where}.type", f"must be a string (got {show(kind)})")


def _add_message(messages: list[Message], item: Mapping[str, Any], where: str) -> None:
    role = item.get("role")
    if role not in _ROLES:
        raise refuse_at(f"{where}.role", f"must be one of {', '.join(_ROLES)} (got {show(role)})")
    content = _read_parts(item.get("content"), f"{where}.content")
    last = messages[-1] if messages else {}
    if role == "assistant" and last.get("role") == role and not last["content"]:
        last["content"] = content
    else:
        messages.append({"role": role, "content": content})


def _add_reasoning(messages: list[Message], item: Mapping[str, Any], where: str) -> None:
    """Put it into the assistant's next turn, which begins with it."""
    if item.get("encrypted_content") is not None:
        raise not_served_at(f"{where}.encrypted_content")
    content = item.get("content")
    if not isinstance(content, list | None):
        raise refuse_at(f"{where}.content", f"must be a list of parts (got {show(content)})")
    text = ""
    for i, part in enumerate(content or []):
        if not isinstance(part, dict):
            raise refuse_at(f"{where}.content[{i}]", f"must be an object (got {show(part)})")
        text += string_at(part, "text", f"{where}.content[{i}]")
    if not text:
        return
    last = messages[-1] if messages else {}
    if last.get("role") != "assistant" or last["content"] or "tool_calls" in last:
        last = {"role": "assistant", "content": "", "reasoning_content": ""}
        messages.append(last)
    last["reasoning_content"] = last.get("reasoning_content", "") + text


def _turn(messages: list[Message]) -> Message:
    """Give the assistant's turn at the end, a new one if there is none."""
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": ""})
    return messages[-1]


def _read_call(item: Mapping[str, Any], where: str) -> Message:
    function = {"name": name_at(item, where), "arguments": string_at(item, "arguments", where)}
    return {"id": string_at(item, "call_id", where), "type": "function", "function": function}


def _read_parts(value: Any, where: str) -> str | list[Message]:
    """Read a string, or a list of parts as those of a chat message."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise refuse_at(where, f"must be a string or a list of parts (got {show(value)})")
    return [{"type": "text", "text": _read_part(part, f"{where}[{i}]")} for i, part in enumerate(value)]


def _read_part(part: Any, where: str) -> str:
    if not isinstance(part, dict):
        raise refuse_at(where, f"must be an object (got {show(part)})")
    kind = part.get("type")
    if not isinstance(kind, str) or kind not in _TEXT_PARTS | _NOT_SERVED_PARTS | {"refusal"}:
        raise refuse_at(f"{where}.type", f"is not a known kind of content part (got {show(kind)})")
    if kind in _NOT_SERVED_PARTS:
        raise not_served_at(where, f": parts of type '{kind}' are not read")
    return string_at(part, "refusal" if kind == "refusal" else "text", where)
