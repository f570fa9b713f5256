"""What POST /v1/responses refuses, and which field it names."""

from typing import Any

import pytest

TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}}
CALL = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}


def user(*parts: Any) -> dict[str, Any]:
    return {"input": [{"role": "user", "content": list(parts)}]}


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"input": None}, "input", "'input' must be"),
    ({"input": []}, "input", "'input' must be"),
    ({"input": 1}, "input", "'input' must be"),
    ({"input": ["x"]}, "input", "'input[0]' must be an object"),
    ({"input": [{"role": "tool", "content": "x"}]}, "input", "'input[0].role' must be"),
    ({"input": [{"role": "user"}]}, "input", "'input[0].content' must be"),
    ({"input": [{"type": 1}]}, "input", "'input[0].type' must be a string"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "input", "items of type 'item_reference' are not read"),
    ({"input": [{"type": "computer_call"}]}, "input", "items of type 'computer_call' are not read"),
    ({"input": [{**CALL, "call_id": None}]}, "input", "'input[0].call_id' must be"),
    ({"input": [{**CALL, "name": ""}]}, "input", "'input[0].name' must be"),
    ({"input": [{**CALL, "arguments": {}}]}, "input", "'input[0].arguments' must be"),
    ({"input": [{"type": "function_call_output", "output": "x"}]}, "input", "'input[0].call_id' must be"),
    ({"input": [{"type": "function_call_output", "call_id": "a"}]}, "input", "'input[0].output' must be"),
    (
        {"input": [{"type": "reasoning", "encrypted_content": "x"}]},
        "input",
        "'input[0].encrypted_content' is not supported",
    ),
    ({"input": [{"type": "reasoning", "content": "x"}]}, "input", "'input[0].content' must be a list"),
    ({"input": [{"type": "reasoning", "content": [1]}]}, "input", "'input[0].content[0]' must be"),
    (user(1), "input", "'input[0].content[0]' must be"),
    (user({"type": "input_text"}), "input", "'input[0].content[0].text' must be"),
    (user({"type": "tool_use"}), "input", "'input[0].content[0].type' is not a known kind"),
    (user({"type": "input_image", "image_url": "x"}), "input", "parts of type 'input_image'"),
    (user({"type": "input_file", "file_id": "x"}), "input", "parts of type 'input_file'"),
    ({"instructions": 1}, "instructions", "'instructions' must be"),
    ({"max_output_tokens": 0}, "max_output_tokens", "'max_output_tokens' must be"),
    ({"max_output_tokens": 1 << 40}, "input", "maximum context length"),
    ({"temperature": -1}, "temperature", "'temperature' must be"),
    ({"top_p": 2}, "top_p", "'top_p' must be"),
    ({"stream": 1}, "stream", "'stream' must be"),
    ({"store": 1}, "store", "'store' must be"),
    ({"metadata": {str(i): "" for i in range(17)}}, "metadata", "'metadata' must be"),
    ({"metadata": {"a": 1}}, "metadata", "'metadata' must be"),
    ({"previous_response_id": 1}, "previous_response_id", "'previous_response_id' must be"),
    ({"previous_response_id": "resp_x"}, "previous_response_id", "no response with the id 'resp_x'"),
    ({"background": True}, "background", "'background' is not supported"),
    ({"background": 0}, "background", "'background' must be"),
    ({"include": ["reasoning.encrypted_content"]}, "include", "'include' is not supported"),
    ({"conversation": "conv_x"}, "conversation", "'conversation' is not supported"),
    ({"prompt": {"id": "x"}}, "prompt", "'prompt' is not supported"),
    ({"truncation": "auto"}, "truncation", "'truncation' is not supported"),
    ({"top_logprobs": 1}, "top_logprobs", "'top_logprobs' is not supported"),
    ({"reasoning": "low"}, "reasoning", "'reasoning' must be"),
    ({"reasoning": {"effort": "most"}}, "reasoning.effort", "'reasoning.effort' must be"),
    ({"text": 1}, "text", "'text' must be"),
    ({"text": {"format": 1}}, "text.format", "'text.format' must be an object"),
    ({"text": {"format": {"type": "xml"}}}, "text.format", "'text.format.type' must be"),
    ({"text": {"format": {"type": "json_schema", "schema": 1}}}, "text.format", "'text.format.schema' must be"),
    (
        {"text": {"format": {"type": "json_object"}}, "tools": [TOOL], "tool_choice": "required"},
        "text.format",
        "'text.format' must not stand beside",
    ),
    ({"tools": [1]}, "tools", "'tools[0]' must be an object"),
    ({"tools": [{"type": "web_search"}]}, "tools", 'only tools of type "function" are (got "web_search")'),
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools", "'tools[0].name' must be"),
    ({"tools": [{**TOOL, "parameters": 1}]}, "tools", "'tools[0].parameters' must be"),
    ({"tool_choice": "required"}, "tool_choice", "'tool_choice': \"required\" needs 'tools'"),
    ({"tools": [TOOL], "tool_choice": {"type": "function"}}, "tool_choice", "'tool_choice.name' must be"),
    ({"tools": [TOOL], "tool_choice": {"type": "web_search"}}, "tool_choice", "'tool_choice.type' must be"),
    (
        {"tools": [TOOL], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"name": "g"}]}},
        "tool_choice",
        "'tool_choice.tools[0].name' is \"g\"",
    ),
]


@pytest.mark.parametrize(("fields", "param", "text"), REFUSED, ids=[text for _, _, text in REFUSED])
async def test_a_refusal_names_the_field_of_this_api(gateway: Any, fields: Any, param: str, text: str) -> None:
    response = await gateway.post("/v1/responses", {"input": "hello"} | fields)
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert text in error["message"]
    assert error["param"] == param
    assert gateway.engine.requests == []


@pytest.mark.parametrize(
    "fields",
    [
        {"background": False, "include": [], "truncation": "disabled", "top_logprobs": 0, "conversation": None},
        {"text": {"format": {"type": "text"}, "verbosity": "low"}, "reasoning": {"effort": "low", "summary": "auto"}},
        {"tools": [], "tool_choice": "auto", "metadata": None, "store": None, "instructions": ""},
        {"tools": [TOOL], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"name": "f"}]}},
        {"input": [{"type": "reasoning", "summary": []}, {"role": "developer", "content": "x"}]},
        {"n": 3, "logprobs": True, "max_tokens": 0, "messages": 1},
    ],
    ids=str,
)
async def test_what_asks_for_nothing_passes(gateway: Any, fields: dict[str, Any]) -> None:
    response = await gateway.post("/v1/responses", {"input": "hello", "max_output_tokens": 5} | fields)
    assert response.status_code == 200, response.text
    assert len(gateway.engine.requests) == 1


async def test_a_stored_response_is_not_streamed(gateway: Any) -> None:
    kept = (await gateway.post("/v1/responses", {"input": "hello", "max_output_tokens": 5})).json()
    response = await gateway.client.get(f"/v1/responses/{kept['id']}?stream=true")
    assert (response.status_code, response.json()["error"]["param"]) == (400, "stream")
    assert (await gateway.client.get(f"/v1/responses/{kept['id']}?stream=false")).json() == kept
    deleted = await gateway.client.delete(f"/v1/responses/{kept['id']}")
    assert deleted.json() == {"id": kept["id"], "object": "response", "deleted": True}


async def test_browsers_may_delete(start_gateway: Any) -> None:
    gateway = await start_gateway(cors_origins="https://a.example")
    headers = {"Origin": "https://a.example", "Access-Control-Request-Method": "DELETE"}
    response = await gateway.client.options("/v1/responses/resp_x", headers=headers)
    assert response.status_code == 200
    assert "DELETE" in response.headers["access-control-allow-methods"]
