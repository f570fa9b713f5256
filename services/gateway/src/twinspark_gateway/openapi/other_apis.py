"""JSON schemas of the fields of Messages and Responses; see request_fields.py."""

from collections.abc import Mapping

from twinspark_gateway.openapi.request_fields import (
    BOOLEAN,
    BUDGET,
    LIMITED_TEXT,
    OBJECT,
    SHARED,
    TEXT,
    Schema,
    integer,
    one_property,
    one_type,
)
from twinspark_gateway.schemas.responses.request import MAX_METADATA
from twinspark_gateway.schemas.sampling import MAX_STOPS
from twinspark_gateway.schemas.thinking import EFFORTS

# The same as in chat.
_SAMPLING = {name: SHARED[name] for name in ("temperature", "top_p", "top_k", "seed", "draft", "priority", "stream")}
_NAME: Schema = {"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}$"}


def _object(required: tuple[str, ...], **properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


def _texts(block: Schema) -> Schema:
    return {"anyOf": [TEXT, {"type": "array", "items": block}]}


_TEXT_BLOCK = _object(("type", "text"), type={"const": "text"}, text=TEXT)
_BLOCKS: Schema = {
    "anyOf": [
        _TEXT_BLOCK,
        _object(("type", "thinking"), type={"const": "thinking"}, thinking=TEXT),
        _object(("type", "id", "name", "input"), type={"const": "tool_use"}, id=TEXT, name=_NAME, input=OBJECT),
    ]
}
_RESULT = _object(
    ("type", "tool_use_id"),
    type={"const": "tool_result"},
    tool_use_id=TEXT,
    content=_texts(_TEXT_BLOCK),
    is_error=BOOLEAN,
)
_MESSAGE: Schema = {
    "anyOf": [
        _object(("role", "content"), role={"const": "user"}, content=_texts({"anyOf": [_TEXT_BLOCK, _RESULT]})),
        _object(("role", "content"), role={"const": "assistant"}, content=_texts(_BLOCKS)),
        _object(("role", "content"), role={"const": "system"}, content=_texts(_TEXT_BLOCK)),
    ]
}
_TOOL = _object(("name",), name=_NAME, description=TEXT, input_schema=OBJECT, strict=BOOLEAN)
# What makes the prompt.
MESSAGES_PROMPT: Mapping[str, Schema] = {
    "model": TEXT,
    "system": _texts(_TEXT_BLOCK),
    "messages": {"type": "array", "items": _MESSAGE, "minItems": 1},
    "thinking": _object(("type",), type={"enum": ["disabled", "enabled", "adaptive"]}, budget_tokens=BUDGET),
    "tools": {"type": "array", "items": _TOOL},
    "tool_choice": {
        "anyOf": [
            _object(("type",), type={"enum": ["auto", "any", "none"]}, disable_parallel_tool_use=BOOLEAN),
            _object(("type", "name"), type={"const": "tool"}, name=_NAME, disable_parallel_tool_use=BOOLEAN),
        ]
    },
    "output_config": _object((), effort={"enum": list(EFFORTS)}, format=one_type("json_schema", schema=OBJECT)),
}
MESSAGES: Mapping[str, Schema] = {
    **MESSAGES_PROMPT,
    **_SAMPLING,
    "max_tokens": integer(1),
    "stop_sequences": {"type": "array", "items": LIMITED_TEXT, "maxItems": MAX_STOPS},
}
_PART = _object(("type", "text"), type={"enum": ["input_text", "output_text"]}, text=TEXT)
_ROLES: Schema = {"enum": ["user", "assistant", "system", "developer"]}
_ITEM: Schema = {
    "anyOf": [
        _object(("role", "content"), role=_ROLES, content=_texts(_PART)),
        _object(
            ("type", "call_id", "name", "arguments"),
            type={"const": "function_call"},
            call_id=TEXT,
            name=_NAME,
            arguments=TEXT,
        ),
        _object(
            ("type", "call_id", "output"), type={"const": "function_call_output"}, call_id=TEXT, output=_texts(_PART)
        ),
        _object(
            ("type",), type={"const": "reasoning"}, content={"type": "array", "items": _object(("text",), text=TEXT)}
        ),
    ]
}
_FORMAT: Schema = {
    "anyOf": [
        one_type("text"),
        one_type("json_object"),
        _object(("type", "schema"), type={"const": "json_schema"}, name=TEXT, schema=OBJECT, strict=BOOLEAN),
    ]
}
RESPONSES: Mapping[str, Schema] = {
    **_SAMPLING,
    "model": TEXT,
    "input": {"anyOf": [TEXT, {"type": "array", "items": _ITEM, "minItems": 1}]},
    "instructions": TEXT,
    "max_output_tokens": integer(1),
    "tools": {
        "type": "array",
        "items": _object(
            ("type", "name"),
            type={"const": "function"},
            name=_NAME,
            description=TEXT,
            parameters=OBJECT,
            strict=BOOLEAN,
        ),
    },
    "tool_choice": {
        "anyOf": [
            {"enum": ["none", "auto", "required"]},
            one_type("function", name=_NAME),
            _object(
                ("type", "tools"),
                type={"const": "allowed_tools"},
                mode={"enum": ["auto", "required"]},
                tools={"type": "array", "items": one_property("name", _NAME), "minItems": 1},
            ),
        ]
    },
    "parallel_tool_calls": BOOLEAN,
    "reasoning": _object((), effort={"enum": list(EFFORTS)}),
    "thinking_budget": BUDGET,
    "text": _object((), format=_FORMAT),
    "store": BOOLEAN,
    "metadata": {"type": "object", "additionalProperties": TEXT, "maxProperties": MAX_METADATA},
    "previous_response_id": TEXT,
    # What asks for nothing passes; other values are not served.
    "background": {"const": False},
    "include": {"type": "array", "maxItems": 0},
    "conversation": {"type": "null"},
    "prompt": {"type": "null"},
    "truncation": {"const": "disabled"},
    "top_logprobs": {"const": 0},
}
