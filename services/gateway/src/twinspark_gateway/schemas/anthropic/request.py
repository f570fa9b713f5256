"""Translates the body of POST /v1/messages to the body of a chat request, which chat's readers then check."""

from collections.abc import Mapping
from typing import Any

from twinspark_gateway.schemas.anthropic.conversation import translate_messages
from twinspark_gateway.schemas.field_names import FieldNames
from twinspark_gateway.schemas.fields import Fields, not_served_at, refuse, refuse_at, show
from twinspark_gateway.schemas.tools import translate_tools

NAMES = FieldNames(
    (
        (r"stop", "stop_sequences"),
        (r"tools(\[\d+\])\.function\.parameters", r"tools\1.input_schema"),
        (r"tools(\[\d+\])\.function", r"tools\1"),
        (r"tool_choice\.function", "tool_choice"),
        (r"reasoning_effort", "output_config.effort"),
        (r"response_format(?:\.json_schema)?", "output_config.format"),
    )
)
# The same in both APIs; the last ones are extensions of this server.
_SAME = ("max_tokens", "temperature", "top_p", "top_k", "stream", "seed", "draft", "priority")
_CHOICES = {"auto": "auto", "any": "required", "none": "none"}


def translate_request(body: Mapping[str, Any]) -> dict[str, Any]:
    """Give the chat request. Raises ApiError."""
    if body.get("max_tokens") is None:
        raise refuse("max_tokens", None, "an integer, at least 1")
    chat = translate_prompt(body) | {key: body.get(key) for key in _SAME}
    return chat | {"stop": body.get("stop_sequences")}


def translate_prompt(body: Mapping[str, Any]) -> dict[str, Any]:
    """Give the fields of the chat request that its prompt is made from. Raises ApiError."""
    fields = Fields(body)
    chat: dict[str, Any] = {
        "messages": translate_messages(body.get("system"), body.get("messages")),
        "thinking": _translate_thinking(body.get("thinking")),
        "tools": translate_tools(body.get("tools"), _translate_tool),
    }
    choice = fields.inner("tool_choice")
    chat["tool_choice"] = _translate_choice(body.get("tool_choice"))
    chat["parallel_tool_calls"] = not choice.boolean("disable_parallel_tool_use", False)
    output = fields.mapping("output_config")
    chat["reasoning_effort"] = output.get("effort")
    chat["response_format"] = _translate_format(output.get("format"))
    # The reply goes on with what it ends with.
    last = chat["messages"][-1]
    chat["continue_final_message"] = last["role"] == "assistant" and "tool_calls" not in last
    return chat


def _translate_thinking(value: Any) -> Any:
    if value is None:
        return False
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "disabled":
        return False
    if kind == "adaptive":
        return True
    if kind != "enabled":
        raise refuse("thinking", value, 'an object whose type is "disabled", "enabled" or "adaptive"')
    return {"type": "enabled", "budget_tokens": value.get("budget_tokens")}


def _translate_tool(tool: Any, where: str) -> Any:
    if not isinstance(tool, dict):
        return tool
    kind = tool.get("type")
    if kind not in (None, "custom"):
        raise not_served_at(f"{where}.type", f': only tools of type "custom" are (got {show(kind)})')
    function = {"name": tool.get("name")}
    for key, name in (("description", "description"), ("input_schema", "parameters"), ("strict", "strict")):
        if tool.get(key) is not None:
            function[name] = tool[key]
    return {"type": "function", "function": function}


def _translate_choice(choice: Any) -> Any:
    if choice is None:
        return None
    kind = choice.get("type")
    if kind == "tool":
        return {"type": "function", "function": {"name": choice.get("name")}}
    if not isinstance(kind, str) or kind not in _CHOICES:
        raise refuse_at("tool_choice.type", f'must be "auto", "any", "tool" or "none" (got {show(kind)})')
    return _CHOICES[kind]


def _translate_format(value: Any) -> Any:
    if not isinstance(value, dict) or value.get("type") != "json_schema":
        return value
    return {"type": "json_schema", "json_schema": {"name": "output", "schema": value.get("schema")}}
