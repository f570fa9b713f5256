"""What POST /v1/messages refuses, and which field it names."""

from typing import Any

import pytest

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
TOOL = {"name": "f", "input_schema": {"type": "object"}}


def user(*blocks: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(blocks)}]}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"messages": [*HELLO, {"role": "assistant", "content": list(blocks)}, *HELLO]}


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"max_tokens": None}, "'max_tokens' must be"),
    ({"max_tokens": 0}, "'max_tokens' must be"),
    ({"messages": []}, "'messages' must be"),
    ({"messages": "x"}, "'messages' must be"),
    ({"messages": [1]}, "'messages[0]' must be an object (got 1)"),
    ({"messages": [{"role": "tool", "content": ""}]}, "'messages[0].role' must be"),
    ({"messages": [{"role": "user"}]}, "'messages[0].content' must be"),
    (user(1), "'messages[0].content[0]' must be an object"),
    (user({"type": "text"}), "'messages[0].content[0].text' must be a string"),
    (user({"type": "thinking", "thinking": ""}), "'messages[0].content[0].type' is not a kind"),
    (user({"type": "image", "source": {}}), "'messages[0].content[0]' is not supported"),
    (user({"type": "document"}), "blocks of type 'document' are not read"),
    (user({"type": "tool_result"}), "'messages[0].content[0].tool_use_id' must be"),
    (user({"type": "tool_result", "tool_use_id": "a", "is_error": 1}), "'messages[0].content[0].is_error' must be"),
    (user({"type": "tool_result", "tool_use_id": "a", "content": 1}), "'messages[0].content[0].content' must be"),
    (
        user({"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image"}]}),
        "'messages[0].content[0].content[0]' is not supported",
    ),
    (assistant({"type": "redacted_thinking", "data": ""}), "'messages[1].content[0]' is not supported"),
    (assistant({"type": "thinking"}), "'messages[1].content[0].thinking' must be"),
    (assistant({"type": "tool_use", "id": "a", "name": ""}), "'messages[1].content[0].name' must be"),
    (assistant({"type": "tool_use", "id": "a", "name": "f", "input": "{}"}), "'messages[1].content[0].input' must be"),
    (assistant({"type": "tool_use", "name": "f"}), "'messages[1].content[0].id' must be"),
    ({"system": 1}, "'system' must be"),
    ({"system": False}, "'system' must be"),
    ({"system": [{"type": "image"}]}, "'system[0]' is not supported"),
    ({"stop_sequences": "x" * 5000}, "'stop_sequences': each string"),
    ({"stop_sequences": [None]}, "'stop_sequences' must be"),
    ({"temperature": -1}, "'temperature' must be"),
    ({"top_p": 0}, "'top_p' must be"),
    ({"top_k": 0.5}, "'top_k' must be"),
    ({"stream": 1}, "'stream' must be"),
    ({"thinking": True}, "'thinking' must be"),
    ({"thinking": {"type": "between"}}, "'thinking' must be"),
    ({"thinking": {"type": "enabled", "budget_tokens": -1}}, "'thinking.budget_tokens' must be an integer"),
    ({"output_config": 1}, "'output_config' must be"),
    ({"output_config": {"effort": "most"}}, "'output_config.effort' must be"),
    ({"output_config": {"format": {"type": "json_schema"}}}, "'output_config.format.schema' must be a JSON schema"),
    ({"output_config": {"format": {"type": "xml"}}}, "'output_config.format.type' must be"),
    ({"output_config": {"format": 1}}, "'output_config.format' must be"),
    ({"tools": 1}, "'tools' must be"),
    ({"tools": [1]}, "'tools[0]' must be an object"),
    ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "'tools[0].type' is not supported"),
    ({"tools": [{"name": "a b"}]}, "'tools[0].name' must be"),
    ({"tools": [TOOL, TOOL]}, "'tools[1].name' is the name of another tool"),
    ({"tools": [{"name": "f", "input_schema": 1}]}, "'tools[0].input_schema' must be"),
    ({"tools": [{"name": "f", "input_schema": {"type": "array"}}]}, "'tools[0].input_schema.type' must be"),
    ({"tools": [TOOL], "tool_choice": "auto"}, "'tool_choice' must be an object"),
    ({"tools": [TOOL], "tool_choice": {"type": "required"}}, "'tool_choice.type' must be"),
    ({"tool_choice": {"type": "any"}}, "'tool_choice': \"required\" needs 'tools'"),
    ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "g"}}, "'tool_choice.name' is \"g\""),
    (
        {"tools": [TOOL], "tool_choice": {"type": "auto", "disable_parallel_tool_use": 1}},
        "'tool_choice.disable_parallel_tool_use' must be",
    ),
]


@pytest.mark.parametrize(("fields", "text"), REFUSED, ids=lambda value: value if isinstance(value, str) else "")
async def test_a_refusal_names_the_field_of_this_api(gateway: Any, fields: dict[str, Any], text: str) -> None:
    response = await gateway.post("/v1/messages", {"messages": HELLO, "max_tokens": 5} | fields)
    assert response.status_code == 400
    body = response.json()
    assert set(body) == {"type", "error"}
    assert set(body["error"]) == {"type", "message"}
    assert (body["type"], body["error"]["type"]) == ("error", "invalid_request_error")
    assert text in body["error"]["message"]
    assert gateway.engine.requests == []


@pytest.mark.parametrize(
    "fields",
    [
        {"system": ""},
        {"system": [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral"}}]},
        {"metadata": {"user_id": "x"}, "service_tier": "auto", "container": None, "unknown": [1]},
        {"tools": [], "tool_choice": None, "thinking": None, "stop_sequences": None, "temperature": None},
        {"tools": [TOOL], "tool_choice": {"type": "none"}},
        {"messages": [*HELLO, {"role": "system", "content": "now"}, *HELLO]},
        {"n": 3, "logprobs": True},
        user(),
    ],
    ids=str,
)
async def test_what_asks_for_nothing_passes(gateway: Any, fields: dict[str, Any]) -> None:
    response = await gateway.post("/v1/messages", {"messages": HELLO, "max_tokens": 5} | fields)
    assert response.status_code == 200, response.text
    assert len(gateway.engine.requests) == 1


async def test_other_methods_and_bodies_have_its_shape_too(gateway: Any) -> None:
    for response in (
        await gateway.client.get("/v1/messages"),
        await gateway.client.post("/v1/messages", content=b"[]"),
        await gateway.client.post("/v1/messages/count_tokens", json={"messages": 1}),
    ):
        assert response.status_code in (400, 405)
        assert response.json()["type"] == "error"
    assert "error" in (await gateway.client.get("/v1/messagesx")).json()
    assert "type" not in (await gateway.client.get("/v1/messagesx")).json()
