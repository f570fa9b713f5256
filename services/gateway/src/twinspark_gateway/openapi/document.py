"""Builds the document: paths, what they take, and the shapes of errors."""

import re
from dataclasses import dataclass
from typing import Any

from twinspark_gateway.openapi.other_apis import MESSAGES, MESSAGES_PROMPT, RESPONSES
from twinspark_gateway.openapi.request_fields import CHAT, COMPLETION, DETOKENIZE, TOKENIZE, Schema, body_schema

_JSON = "application/json"
_EVENTS = "text/event-stream"
_ANTHROPIC_ERROR: Schema = {
    "type": "object",
    "properties": {
        "type": {"const": "error"},
        "error": {
            "type": "object",
            "properties": {"type": {"type": "string"}, "message": {"type": "string"}},
            "required": ["type", "message"],
        },
    },
    "required": ["type", "error"],
}
_ERROR: Schema = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
            "required": ["message", "type", "param", "code"],
        }
    },
    "required": ["error"],
}
# data: a JSON object, of an error in its last but one event if the reply fails; then [DONE].
_EVENT: Schema = {"type": "object", "properties": {"data": {"type": "string"}}, "required": ["data"]}
_KEY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "api_key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method and path, and its other paths."""

    method: str
    paths: tuple[str, ...]
    summary: str
    # Fields that the JSON object of a 200 always has.
    reply_fields: tuple[str, ...] = ()
    body: Schema | None = None
    streams: bool = False
    # What a 200 holds where it is not JSON.
    media_type: str = _JSON
    # A 503 of it has the shape of a 200.
    is_health: bool = False
    # Among the document's schemas.
    error: str = "Error"


ENDPOINTS = (
    Endpoint(
        "post",
        ("/v1/chat/completions", "/chat/completions"),
        "Answer a conversation.",
        ("id", "object", "created", "model", "choices", "usage"),
        body_schema(CHAT, ("messages",)),
        streams=True,
    ),
    Endpoint(
        "post",
        ("/v1/completions", "/completions"),
        "Continue one or several prompts.",
        ("id", "object", "created", "model", "choices", "usage"),
        body_schema(COMPLETION, ("prompt",)),
        streams=True,
    ),
    Endpoint(
        "post",
        ("/v1/messages",),
        "Answer a conversation, in Anthropic's shape.",
        ("id", "type", "role", "model", "content", "stop_reason", "usage"),
        body_schema(MESSAGES, ("messages", "max_tokens")),
        streams=True,
        error="AnthropicError",
    ),
    Endpoint(
        "post",
        ("/v1/messages/count_tokens",),
        "Count the tokens of the prompt that the same body would run.",
        ("input_tokens",),
        body_schema(MESSAGES_PROMPT, ("messages",)),
        error="AnthropicError",
    ),
    Endpoint(
        "post",
        ("/v1/responses",),
        "Answer an input; the response may be stored.",
        ("id", "object", "created_at", "status", "model", "output", "usage"),
        body_schema(RESPONSES, ("input",)),
        streams=True,
    ),
    Endpoint("get", ("/v1/responses/{response_id}",), "Give a stored response.", ("id", "object", "status", "output")),
    Endpoint("delete", ("/v1/responses/{response_id}",), "Forget a stored response.", ("id", "object", "deleted")),
    Endpoint(
        "post",
        ("/tokenize", "/v1/tokenize"),
        "Give the token ids of a text (prompt) or of a conversation (messages).",
        ("count", "max_model_len", "tokens", "token_strs"),
        body_schema(TOKENIZE),
    ),
    Endpoint(
        "post",
        ("/detokenize", "/v1/detokenize"),
        "Give the text of token ids.",
        ("prompt",),
        body_schema(DETOKENIZE, ("tokens",)),
    ),
    Endpoint("get", ("/v1/models", "/models"), "List the served model.", ("object", "data")),
    Endpoint("get", ("/v1/models/{name}", "/models/{name}"), "Describe a model by name or alias.", ("id", "object")),
    Endpoint("get", ("/health", "/v1/health"), "Say whether requests are served.", ("status",), is_health=True),
    Endpoint("get", ("/metrics", "/v1/metrics"), "Metrics for Prometheus.", media_type="text/plain"),
    Endpoint("get", ("/memory", "/v1/memory"), "Account for memory by rank.", ("object", "ranks")),
    Endpoint("get", ("/openapi.json",), "This document.", ("openapi", "paths")),
)


def build_document(version: str) -> dict[str, Any]:
    """Give the document as JSON data."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        for path in endpoint.paths:
            paths.setdefault(path, {})[endpoint.method] = _operation(endpoint, path)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Twinspark", "version": version},
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR, "AnthropicError": _ANTHROPIC_ERROR},
            "securitySchemes": _KEY_SCHEMES,
        },
        # Where keys are set; {} says that they may not be.
        "security": [{}, *({name: []} for name in _KEY_SCHEMES)],
    }


def _operation(endpoint: Endpoint, path: str) -> dict[str, Any]:
    operation: dict[str, Any] = {"summary": endpoint.summary, "responses": _responses(endpoint)}
    if endpoint.body is not None:
        operation["requestBody"] = {"required": True, "content": {_JSON: {"schema": endpoint.body}}}
    names = re.findall(r"{(\w+)}", path)
    if names:
        text = {"in": "path", "required": True, "schema": {"type": "string"}}
        operation["parameters"] = [{"name": name, **text} for name in names]
    return operation


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    error = {"content": {_JSON: {"schema": {"$ref": f"#/components/schemas/{endpoint.error}"}}}}
    reply: dict[str, Any] = {"type": "object", "required": list(endpoint.reply_fields)}
    content: dict[str, Any] = {
        endpoint.media_type: {"schema": reply if endpoint.media_type == _JSON else {"type": "string"}}
    }
    if endpoint.streams:
        content[_EVENTS] = {"schema": _EVENT}
    responses: dict[str, Any] = {
        "200": {"description": "Done.", "content": content},
        "4XX": {"description": "Refused.", **error},
        "5XX": {"description": "Failed; 503: not now.", **error},
    }
    if endpoint.is_health:
        responses["503"] = {"description": "Requests are not served.", "content": content}
    return responses
