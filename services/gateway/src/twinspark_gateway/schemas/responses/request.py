"""Translates the body of POST /v1/responses to the body of a chat request, which chat's readers then check."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinspark_gateway.schemas.field_names import FieldNames
from twinspark_gateway.schemas.fields import Fields, not_served_at, refuse, show
from twinspark_gateway.schemas.later_fields import RESPONSES, check_later_fields
from twinspark_gateway.schemas.responses.conversation import Message, translate_input
from twinspark_gateway.schemas.tools import translate_tools

NAMES = FieldNames(
    (
        (r"messages", "input"),
        (r"max_tokens", "max_output_tokens"),
        (r"tools(\[\d+\])\.function", r"tools\1"),
        (r"tool_choice\.allowed_tools\.tools(\[\d+\])\.function", r"tool_choice.tools\1"),
        (r"tool_choice\.(?:function|allowed_tools)", "tool_choice"),
        (r"reasoning_effort", "reasoning.effort"),
        (r"response_format(?:\.json_schema)?", "text.format"),
    )
)
MAX_METADATA = 16
# The same in both APIs; the last ones are extensions of this server.
_SAME = (
    "temperature",
    "top_p",
    "parallel_tool_calls",
    "stream",
    "top_k",
    "seed",
    "draft",
    "priority",
    "thinking_budget",
)


@dataclass(frozen=True, slots=True)
class ResponsesRequest:
    """A translated request, and what belongs to this API alone."""

    # Body of the chat request, without messages.
    chat: Mapping[str, Any]
    # Of `input`.
    messages: Sequence[Message]
    instructions: str | None
    previous_response_id: str | None
    store: bool
    # Fields that the reply repeats.
    echo: Mapping[str, Any]

    def chat_body(self, earlier: Sequence[Message]) -> dict[str, Any]:
        """Give the body of the chat request that goes on after earlier messages."""
        first = [] if self.instructions is None else [{"role": "system", "content": self.instructions}]
        return {**self.chat, "messages": [*first, *earlier, *self.messages]}


def translate_request(body: Mapping[str, Any]) -> ResponsesRequest:
    """Give the chat request. Raises ApiError."""
    check_later_fields(body, RESPONSES)
    fields = Fields(body)
    reasoning, text = fields.mapping("reasoning"), fields.mapping("text")
    chat = {key: body.get(key) for key in _SAME}
    chat["max_tokens"] = body.get("max_output_tokens")
    chat["tools"] = translate_tools(body.get("tools"), _translate_tool)
    chat["tool_choice"] = _translate_choice(body.get("tool_choice"))
    chat["reasoning_effort"] = reasoning.get("effort")
    chat["response_format"] = _translate_format(text.get("format"))
    instructions = fields.text("instructions")
    previous = fields.text("previous_response_id")
    store = fields.boolean("store", True)
    echo = {
        "instructions": instructions,
        "metadata": _read_metadata(fields),
        "parallel_tool_calls": fields.boolean("parallel_tool_calls", True),
        "previous_response_id": previous,
        "reasoning": {"effort": reasoning.get("effort"), "summary": None},
        "store": store,
        "text": {"format": text.get("format") or {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
    }
    return ResponsesRequest(chat, translate_input(body.get("input")), instructions, previous, store, echo)


def _read_metadata(fields: Fields) -> Mapping[str, Any]:
    metadata = fields.mapping("metadata")
    if len(metadata) > MAX_METADATA or not all(isinstance(value, str) for value in metadata.values()):
        raise refuse("metadata", metadata, f"an object of at most {MAX_METADATA} strings")
    return metadata


def _translate_tool(tool: Any, where: str) -> Any:
    if not isinstance(tool, dict):
        return tool
    kind = tool.get("type", "function")
    if kind != "function":
        raise not_served_at(f"{where}.type", f': only tools of type "function" are (got {show(kind)})')
    function = {"name": tool.get("name")}
    function |= {key: tool[key] for key in ("description", "parameters", "strict") if tool.get(key) is not None}
    return {"type": "function", "function": function}


def _translate_choice(choice: Any) -> Any:
    if not isinstance(choice, dict):
        return choice
    if choice.get("type") == "function":
        return {"type": "function", "function": {"name": choice.get("name")}}
    if choice.get("type") == "allowed_tools":
        tools = choice.get("tools")
        if isinstance(tools, list):
            tools = [{"function": {"name": tool.get("name")}} if isinstance(tool, dict) else tool for tool in tools]
        return {"type": "allowed_tools", "allowed_tools": {"mode": choice.get("mode", "auto"), "tools": tools}}
    return choice


def _translate_format(value: Any) -> Any:
    if not isinstance(value, dict) or value.get("type") != "json_schema":
        return value
    return {"type": "json_schema", "json_schema": {key: value[key] for key in value if key != "type"}}
