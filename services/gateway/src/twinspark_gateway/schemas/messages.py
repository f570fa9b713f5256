"""Checks the messages of a chat request and normalises them for the template.

Afterwards every content is a string, every tool call's arguments an object, and reasoning stands in reasoning_content.
The caller's objects are not changed.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from twinspark_gateway.errors import not_served_yet
from twinspark_gateway.schemas.fields import refuse_at, show, string_at

# developer is system under a newer name; function is tool under an older one.
ROLES: Mapping[str, str] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_MEDIA_PARTS = frozenset(
    {"image_url", "image", "input_image", "video_url", "video", "input_audio", "audio_url", "file"}
)
_SYSTEM_SEPARATOR = "\n\n"


def read_messages(value: Any) -> list[dict[str, Any]]:
    """Check and normalise the field `messages`. Raises a 400 that names the message."""
    if not isinstance(value, list) or not value:
        raise refuse_at("messages", "must be a non-empty list of messages")
    messages = [_read_message(message, f"messages[{i}]") for i, message in enumerate(value)]
    return _merge_leading_system(messages)


def _read_message(message: Any, where: str) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise refuse_at(where, f"must be an object (got {show(message)})")
    name = message.get("role")
    role = ROLES.get(name) if isinstance(name, str) else None
    if role is None:
        raise refuse_at(f"{where}.role", f"must be one of {', '.join(ROLES)} (got {show(name)})")
    content = message.get("content")
    if role == "tool" and isinstance(content, dict):
        content = json.dumps(content, ensure_ascii=False)
    if content is None and role in ("user", "system"):
        raise refuse_at(f"{where}.content", "must be a string or a list of parts")
    text = _read_content(content, role, f"{where}.content")
    if role == "assistant":
        return _read_assistant(message, text, where)
    if role == "tool":
        call_id = message.get("tool_call_id")
        return {"role": role, "content": text} | ({"tool_call_id": call_id} if isinstance(call_id, str) else {})
    return {"role": role, "content": text}


def _read_content(content: Any, role: str, where: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise refuse_at(where, f"must be a string or a list of parts (got {show(content)})")
    return "".join(_read_part(part, role, f"{where}[{i}]") for i, part in enumerate(content))


def _read_part(part: Any, role: str, where: str) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise refuse_at(where, f"must be an object (got {show(part)})")
    kind = part.get("type")
    if kind in _MEDIA_PARTS if isinstance(kind, str) else False:
        raise not_served_yet("messages", f": '{where}' is of type '{kind}', and only text is read")
    key = {"text": "text", "input_text": "text", "refusal": "refusal"}.get(kind) if isinstance(kind, str) else None
    if key is None or (key == "refusal" and role != "assistant"):
        raise refuse_at(f"{where}.type", f"is not a known kind of content part (got {show(kind)})")
    return string_at(part, key, where)


def _read_assistant(message: Mapping[str, Any], text: str, where: str) -> dict[str, Any]:
    reasoning = message.get("reasoning_content")
    if reasoning is None:
        reasoning = message.get("reasoning")
    if reasoning is not None and not isinstance(reasoning, str):
        raise refuse_at(f"{where}.reasoning_content", f"must be a string (got {show(reasoning)})")
    if not reasoning and "</think>" in text:
        reasoning, text = _split_think_block(text)
    result: dict[str, Any] = {"role": "assistant", "content": text}
    if reasoning is not None:
        # Empty: the client says that there was none.
        result["reasoning_content"] = reasoning
    calls = _read_tool_calls(message, where)
    if calls:
        result["tool_calls"] = calls
    return result


def _split_think_block(text: str) -> tuple[str, str]:
    """Cut a reply that was kept as one text into reasoning and answer, as the checkpoint's template does."""
    block, _, answer = text.partition("</think>")
    return block.rpartition("<think>")[2].strip("\n"), answer.lstrip("\n")


def _read_tool_calls(message: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    calls = message.get("tool_calls")
    if calls is None:
        legacy = message.get("function_call")
        calls = [] if legacy is None else [{"function": legacy}]
    if not isinstance(calls, list):
        raise refuse_at(f"{where}.tool_calls", f"must be a list (got {show(calls)})")
    return [read_tool_call(call, f"{where}.tool_calls[{i}]") for i, call in enumerate(calls)]


def read_tool_call(call: Any, where: str) -> dict[str, Any]:
    """Check and normalise one tool call of an assistant message; `where` is its path in refusals."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise refuse_at(f"{where}.function", "must be an object")
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise refuse_at(f"{where}.function.name", "must be a non-empty string")
    result: dict[str, Any] = {
        "type": "function",
        "function": {"name": name, "arguments": _read_arguments(function.get("arguments"))},
    }
    call_id = call.get("id")
    return result | ({"id": call_id} if isinstance(call_id, str) else {})


def _read_arguments(arguments: Any) -> Mapping[str, Any]:
    """Give the arguments as an object.

    A call that was cut by its limit has arguments that do not parse; it stays in the history as its raw text.
    """
    if arguments is None or arguments == "":
        return {}
    if isinstance(arguments, dict):
        return arguments
    if not isinstance(arguments, str):
        return {"arguments": json.dumps(arguments, ensure_ascii=False)}
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError):
        return {"arguments": arguments}
    return parsed if isinstance(parsed, dict) else {"arguments": arguments}


def _merge_leading_system(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    count = next((i for i, message in enumerate(messages) if message["role"] != "system"), len(messages))
    if count < 2:
        return list(messages)
    text = _SYSTEM_SEPARATOR.join(message["content"] for message in messages[:count])
    return [{"role": "system", "content": text}, *messages[count:]]
