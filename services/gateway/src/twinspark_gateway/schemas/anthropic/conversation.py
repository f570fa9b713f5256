"""Translates `system` and `messages` of the Messages API to the messages of a chat request."""

from collections.abc import Mapping, Sequence
from typing import Any

from twinspark_gateway.errors import ApiError
from twinspark_gateway.schemas.fields import name_at, not_served_at, refuse, refuse_at, show, string_at

Message = dict[str, Any]
# Kinds that the API knows; what else stands there is a mistake.
_NOT_SERVED = frozenset(
    {"image", "document", "search_result", "container_upload", "redacted_thinking", "server_tool_use", "mcp_tool_use"}
)


def translate_messages(system: Any, messages: Any) -> list[Message]:
    """Give the messages of the chat request. Raises a 400 that names the place in the caller's body."""
    if not isinstance(messages, list) or not messages:
        raise refuse("messages", messages, "a non-empty list of messages")
    has_system = system is not None and system not in ("", [])
    translated = [{"role": "system", "content": _read_texts(system, "system")}] if has_system else []
    for i, message in enumerate(messages):
        translated.extend(_translate(message, f"messages[{i}]"))
    return translated


def _translate(message: Any, where: str) -> list[Message]:
    if not isinstance(message, dict):
        raise refuse_at(where, f"must be an object (got {show(message)})")
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        raise refuse_at(f"{where}.role", f'must be "user", "assistant" or "system" (got {show(role)})')
    where = f"{where}.content"
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    if not isinstance(content, list):
        raise refuse_at(where, f"must be a string or a list of blocks (got {show(content)})")
    if role == "system":
        return [{"role": role, "content": _read_texts(content, where)}]
    return _translate_user(content, where) if role == "user" else [_translate_assistant(content, where)]


def _translate_user(blocks: Sequence[Any], where: str) -> list[Message]:
    """Give a message for every result of a tool, and one for each run of texts between them."""
    messages: list[Message] = []
    for i, block in enumerate(blocks):
        place = f"{where}[{i}]"
        if _kind(block, place) == "tool_result":
            messages.append(_translate_result(block, place))
            continue
        part = {"type": "text", "text": _read_text(block, place)}
        if messages and messages[-1]["role"] == "user":
            messages[-1]["content"].append(part)
        else:
            messages.append({"role": "user", "content": [part]})
    return messages or [{"role": "user", "content": ""}]


def _translate_result(block: Mapping[str, Any], where: str) -> Message:
    call_id = string_at(block, "tool_use_id", where)
    if not isinstance(block.get("is_error"), bool | None):
        raise refuse_at(f"{where}.is_error", f"must be a boolean (got {show(block['is_error'])})")
    content = block.get("content")
    texts = _read_texts(content, f"{where}.content") if content is not None else ""
    return {"role": "tool", "tool_call_id": call_id, "content": texts}


def _translate_assistant(blocks: Sequence[Any], where: str) -> Message:
    texts: list[Message] = []
    thoughts: list[str] = []
    calls: list[Message] = []
    for i, block in enumerate(blocks):
        place = f"{where}[{i}]"
        match _kind(block, place):
            case "thinking":
                thoughts.append(string_at(block, "thinking", place))
            case "tool_use":
                calls.append(_translate_call(block, place))
            case _:
                texts.append({"type": "text", "text": _read_text(block, place)})
    message: Message = {"role": "assistant", "content": texts}
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    return message | ({"tool_calls": calls} if calls else {})


def _translate_call(block: Mapping[str, Any], where: str) -> Message:
    arguments = block.get("input")
    if not isinstance(arguments, dict | None):
        raise refuse_at(f"{where}.input", f"must be an object (got {show(arguments)})")
    function = {"name": name_at(block, where), "arguments": arguments}
    return {"id": string_at(block, "id", where), "type": "function", "function": function}


def _read_texts(value: Any, where: str) -> str | list[Message]:
    """Read a string, or a list of text blocks as the parts of a chat message."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise refuse_at(where, f"must be a string or a list of text blocks (got {show(value)})")
    return [{"type": "text", "text": _read_text(block, f"{where}[{i}]")} for i, block in enumerate(value)]


def _read_text(block: Any, where: str) -> str:
    kind = _kind(block, where)
    if kind != "text":
        raise _refuse_kind(kind, where)
    return string_at(block, "text", where)


def _kind(block: Any, where: str) -> Any:
    if not isinstance(block, dict):
        raise refuse_at(where, f"must be an object (got {show(block)})")
    return block.get("type")


def _refuse_kind(kind: Any, where: str) -> ApiError:
    if isinstance(kind, str) and kind in _NOT_SERVED:
        return not_served_at(where, f": blocks of type '{kind}' are not read")
    return refuse_at(f"{where}.type", f"is not a kind of block that may stand here (got {show(kind)})")
