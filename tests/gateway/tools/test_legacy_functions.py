"""`functions` and `function_call`: the prompt and the reply are those of the `tools` that they mean."""

from typing import Any

from fakes.engine import FakeEngine
from support.scripts import say

CHAT = "/v1/chat/completions"
USER = {"role": "user", "content": "hello"}
FUNCTIONS = [
    {"name": "f", "description": "does", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}},
    {"name": "g"},
]
TOOLS = [{"type": "function", "function": function} for function in FUNCTIONS]
ARGUMENTS = '{"x": 1}'
OLD_HISTORY = [
    {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ARGUMENTS}},
    {"role": "function", "name": "f", "content": "done"},
]
HISTORY = [
    {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": ARGUMENTS}}]},
    {"role": "tool", "content": "done"},
]


async def tokens(gateway: Any, **body: Any) -> list[int]:
    """Give the prompt of a body."""
    response = await gateway.post("/tokenize", {"messages": [USER], **body})
    assert response.status_code == 200, response.text
    ids: list[int] = response.json()["tokens"]
    return ids


async def test_each_request_has_the_prompt_of_its_newer_form(gateway: Any) -> None:
    for legacy, newer in (
        ({"functions": FUNCTIONS}, {"tools": TOOLS}),
        ({"functions": FUNCTIONS, "function_call": "auto"}, {"tools": TOOLS, "tool_choice": "auto"}),
        ({"functions": FUNCTIONS, "function_call": "none"}, {"tools": TOOLS, "tool_choice": "none"}),
        (
            {"functions": FUNCTIONS, "function_call": {"name": "g"}},
            {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "g"}}},
        ),
        ({"functions": [], "tools": TOOLS}, {"tools": TOOLS}),
        ({"functions": FUNCTIONS, "tools": []}, {"tools": TOOLS}),
        ({"functions": [], "function_call": "auto"}, {}),
        ({"messages": [USER, *OLD_HISTORY]}, {"messages": [USER, *HISTORY]}),
    ):
        assert await tokens(gateway, **legacy) == await tokens(gateway, **newer), legacy
    assert await tokens(gateway, functions=FUNCTIONS) != await tokens(gateway)


async def test_a_reply_to_functions_calls_them_as_tools(start_gateway: Any) -> None:
    said = "</think><tool_call>f<arg_key>x</arg_key><arg_value>1</arg_value></tool_call>"
    gateway = await start_gateway(FakeEngine(script=say(said)))
    choice = (await gateway.post(CHAT, {"messages": [USER], "functions": FUNCTIONS})).json()["choices"][0]
    (call,) = choice["message"]["tool_calls"]
    assert (call["function"]["name"], call["function"]["arguments"]) == ("f", '{"x":1}')
    assert choice["finish_reason"] == "tool_calls"
    again = [USER, choice["message"], {"role": "function", "name": "f", "content": "done"}]
    assert (await gateway.post(CHAT, {"messages": again, "functions": FUNCTIONS})).status_code == 200
