"""JSON schemas of the fields of requests, one table for each endpoint. Every optional field may be null: not given."""

from collections.abc import Mapping
from typing import Any

from twinspark_gateway.schemas.chat_request import MAX_TOP_LOGPROBS
from twinspark_gateway.schemas.completion_request import MAX_PROMPTS
from twinspark_gateway.schemas.messages import ROLES
from twinspark_gateway.schemas.sampling import MAX_BIAS, MAX_PENALTY, MAX_STOP_CHARACTERS, MAX_STOPS
from twinspark_gateway.schemas.thinking import EFFORTS

Schema = Mapping[str, Any]

BOOLEAN: Schema = {"type": "boolean"}
TEXT: Schema = {"type": "string"}
OBJECT: Schema = {"type": "object"}
LIST: Schema = {"type": "array", "items": {}}
TOKEN_IDS: Schema = {"type": "array", "items": {"type": "integer", "minimum": 0}}


def integer(low: int | None = None, high: int | None = None) -> Schema:
    """An integer; as everywhere in this API it may come as an integral string."""
    bounds = {"minimum": low, "maximum": high}
    number = {"type": "integer"} | {name: bound for name, bound in bounds.items() if bound is not None}
    return {"anyOf": [number, {"type": "string", "pattern": r"^\d{1,40}$"}]}


def number(low: float | None = None, high: float | None = None, *, above_low: bool = False) -> Schema:
    """A number between bounds."""
    low_name = "exclusiveMinimum" if above_low else "minimum"
    bounds = {low_name: low, "maximum": high}
    return {"type": "number"} | {name: bound for name, bound in bounds.items() if bound is not None}


BUDGET: Schema = {
    **integer(0),
    "description": "If the reply's token of this number still reasons, the reasoning is closed there; 0: the default.",
}


def one_property(name: str, schema: Schema) -> Schema:
    """An object that must have the property."""
    return {"type": "object", "properties": {name: schema}, "required": [name]}


def one_type(kind: str, **properties: Schema) -> Schema:
    """An object whose `type` is this one; all of its properties are required."""
    return {"type": "object", "properties": {"type": {"const": kind}, **properties}, "required": ["type", *properties]}


_NOT_EMPTY: Schema = {"type": "string", "minLength": 1}
_OUTPUTS: Mapping[str, Schema] = {
    "json": {"anyOf": [OBJECT, {"type": "string", "contentMediaType": "application/json"}]},
    "json_object": {"const": True},
    "regex": _NOT_EMPTY,
    "choice": {"type": "array", "items": TEXT, "minItems": 1},
    "grammar": _NOT_EMPTY,
}
_JSON_SCHEMA: Schema = {
    "type": "object",
    "properties": {"name": TEXT, "description": TEXT, "schema": OBJECT, "strict": BOOLEAN},
    "required": ["schema"],
}
_FORMAT: Schema = {
    "anyOf": [one_type("text"), one_type("json_object"), one_type("json_schema", json_schema=_JSON_SCHEMA)]
}
_PENALTY = number(-MAX_PENALTY, MAX_PENALTY)
LIMITED_TEXT: Schema = {"type": "string", "maxLength": MAX_STOP_CHARACTERS}
# Of the two generating endpoints.
SHARED: Mapping[str, Schema] = {
    "model": TEXT,
    "temperature": number(0),
    "top_p": number(0, 1, above_low=True),
    "top_k": integer(),
    "min_p": number(0, 1),
    "seed": integer(-(1 << 63), (1 << 64) - 1),
    "presence_penalty": _PENALTY,
    "frequency_penalty": _PENALTY,
    "repetition_penalty": number(0, above_low=True),
    "logit_bias": {
        "type": "object",
        "propertyNames": {"pattern": "^(0|[1-9][0-9]{0,9})$"},
        "additionalProperties": number(-MAX_BIAS, MAX_BIAS),
    },
    "n": integer(1),
    "stop": {"anyOf": [LIMITED_TEXT, {"type": "array", "items": LIMITED_TEXT, "maxItems": MAX_STOPS}]},
    "stop_token_ids": TOKEN_IDS,
    "ignore_eos": BOOLEAN,
    "min_tokens": integer(0),
    "skip_special_tokens": BOOLEAN,
    "stream": BOOLEAN,
    "stream_options": {
        "type": "object",
        "properties": {"include_usage": BOOLEAN, "continuous_usage_stats": BOOLEAN},
    },
    "return_token_ids": BOOLEAN,
    "draft": {**BOOLEAN, "description": "false: no drafting; the reply is the same."},
    "priority": {"anyOf": [integer(), {"enum": ["foreground", "background"]}]},
    "response_format": _FORMAT,
    "structured_outputs": {
        "description": "One form that the answer must have.",
        "anyOf": [one_property(name, schema) for name, schema in _OUTPUTS.items()],
    },
    **{f"guided_{name}": _OUTPUTS[name] for name in ("json", "regex", "choice", "grammar")},
}
_PART: Schema = {
    "type": "object",
    "properties": {"type": {"enum": ["text", "input_text"]}, "text": TEXT},
    "required": ["type", "text"],
}
_CALL: Schema = {
    "type": "object",
    "properties": {
        "id": TEXT,
        "type": {"const": "function"},
        "function": {
            "type": "object",
            "properties": {"name": {"type": "string", "minLength": 1}, "arguments": {"type": ["string", "object"]}},
            "required": ["name"],
        },
    },
    "required": ["function"],
}
_MESSAGE: Schema = {
    "type": "object",
    "properties": {
        "role": {"enum": list(ROLES)},
        "content": {"anyOf": [TEXT, {"type": "array", "items": _PART}]},
        "reasoning_content": TEXT,
        "reasoning": TEXT,
        "tool_calls": {"type": "array", "items": _CALL},
        "tool_call_id": TEXT,
        "name": TEXT,
    },
    "required": ["role", "content"],
}
_MESSAGES: Schema = {"type": "array", "items": _MESSAGE, "minItems": 1}
_FUNCTION: Schema = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}$"},
        "description": TEXT,
        "parameters": OBJECT,
        "strict": BOOLEAN,
    },
    "required": ["name"],
}
_TOOL: Schema = one_type("function", function=_FUNCTION)
_NAMED: Schema = one_property("name", {"type": "string", "minLength": 1})
_ALLOWED: Schema = {
    "type": "object",
    "properties": {
        "mode": {"enum": ["auto", "required"]},
        "tools": {"type": "array", "items": one_property("function", _NAMED), "minItems": 1},
    },
    "required": ["tools"],
}
# What makes the prompt of a conversation; also of /tokenize.
_CONVERSATION: Mapping[str, Schema] = {
    "messages": _MESSAGES,
    "tools": {"type": "array", "items": _TOOL},
    "tool_choice": {
        "anyOf": [
            {"enum": ["none", "auto", "required"]},
            one_type("function", function=_NAMED),
            one_type("allowed_tools", allowed_tools=_ALLOWED),
        ]
    },
    "parallel_tool_calls": BOOLEAN,
    "functions": {"type": "array", "items": _FUNCTION},
    "function_call": {"anyOf": [{"enum": ["none", "auto"]}, _NAMED]},
    "modalities": {"type": "array", "items": {"const": "text"}, "maxItems": 1},
    "audio": {"type": "null"},
    "thinking": {
        "anyOf": [
            BOOLEAN,
            {
                "type": "object",
                "properties": {"type": {"enum": ["enabled", "disabled"]}, "budget_tokens": integer(0)},
                "required": ["type"],
            },
        ],
    },
    "reasoning_effort": {"enum": list(EFFORTS)},
    "chat_template_kwargs": OBJECT,
    "thinking_budget": BUDGET,
    "reasoning_budget": BUDGET,
    "thinking_token_budget": BUDGET,
    "add_generation_prompt": BOOLEAN,
    "continue_final_message": BOOLEAN,
}
CHAT: Mapping[str, Schema] = {
    **SHARED,
    **_CONVERSATION,
    "max_tokens": integer(1),
    "max_completion_tokens": integer(1),
    "logprobs": BOOLEAN,
    "top_logprobs": integer(0, MAX_TOP_LOGPROBS),
    "include_reasoning": BOOLEAN,
}
_TEXT_PROMPT: Schema = {"type": "string", "minLength": 1}
_ID_PROMPT: Schema = {**TOKEN_IDS, "minItems": 1}
COMPLETION: Mapping[str, Schema] = {
    **SHARED,
    "prompt": {
        "anyOf": [
            _TEXT_PROMPT,
            _ID_PROMPT,
            {"type": "array", "items": _TEXT_PROMPT, "minItems": 1, "maxItems": MAX_PROMPTS},
            {"type": "array", "items": _ID_PROMPT, "minItems": 1, "maxItems": MAX_PROMPTS},
        ]
    },
    "max_tokens": integer(0),
    "logprobs": integer(0),
    "echo": BOOLEAN,
    "best_of": integer(1),
    "suffix": TEXT,
    "add_special_tokens": BOOLEAN,
}
TOKENIZE: Mapping[str, Schema] = {
    **_CONVERSATION,
    "model": TEXT,
    "prompt": TEXT,
    "add_special_tokens": BOOLEAN,
    "return_token_strs": BOOLEAN,
}
DETOKENIZE: Mapping[str, Schema] = {"model": TEXT, "tokens": TOKEN_IDS}


def body_schema(fields: Mapping[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    """Give the schema of a body: fields that are not required may be null, and unknown ones are ignored."""
    properties = {
        name: dict(schema) if name in required else {"anyOf": [dict(schema), {"type": "null"}]}
        for name, schema in fields.items()
    }
    return {"type": "object", "properties": properties, "required": list(required)}
