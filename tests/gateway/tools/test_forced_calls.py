"""Calls that are required, named or strict: what is rendered and asked for, and what a held model then says."""

import json
from typing import Any

import pytest

from fakes.engine import FakeEngine
from fakes.engine_model import FakeModel
from support.constrained import build_engine, source_of
from support.scripts import encode, say
from support.tiny_tokenizer import build_tokenizer
from twinspark.engine.v1 import engine_pb2 as pb
from twinspark.grammar.v1 import grammar_pb2

CHAT = "/v1/chat/completions"
WEATHER: dict[str, Any] = {
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
}
TIME: dict[str, Any] = {"name": "get_time", "parameters": {"type": "object", "properties": {}}}
ANY: dict[str, Any] = {"name": "any", "parameters": {"type": "object"}}


def tool(function: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": function | more}


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def allowed(*names: str) -> dict[str, Any]:
    return {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named(name) for name in names]}}


def call(name: str, **arguments: str) -> str:
    pairs = [f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>" for key, value in arguments.items()]
    return f"<tool_call>{name}{''.join(pairs)}</tool_call>"


BODY: dict[str, Any] = {
    "messages": [{"role": "user", "content": "hello"}],
    "tools": [tool(WEATHER), tool(TIME), tool(ANY)],
    "max_tokens": 300,
    "thinking": False,
}
OSLO = call("get_weather", city="Oslo", days="3")
STRICT = {"tools": [tool(WEATHER, strict=True), tool(TIME), tool(ANY)]}
Calls = list[tuple[str, dict[str, Any]]]
# Fields, what the model would rather say, its content and its calls.
ROWS: list[tuple[dict[str, Any], str, str | None, Calls]] = [
    ({"tool_choice": "required"}, "No, thanks.", None, [("any", {})]),
    ({"tool_choice": "required"}, f"Now: {OSLO}", None, [("any", {})]),
    ({"tool_choice": "required"}, OSLO, None, [("get_weather", {"city": "Oslo", "days": 3})]),
    ({"tool_choice": "required"}, f"{OSLO}Done.", "Done.", [("get_weather", {"city": "Oslo", "days": 3})]),
    (
        {"tool_choice": "required"},
        f"{OSLO}\n{call('get_time')}",
        None,
        [("get_weather", {"city": "Oslo", "days": 3}), ("get_time", {})],
    ),
    (
        {"tool_choice": "required", "parallel_tool_calls": False},
        f"{OSLO}{call('get_time')}",
        None,
        [("get_weather", {"city": "Oslo", "days": 3})],
    ),
    ({"tool_choice": named("get_time")}, OSLO, None, [("get_time", {})]),
    ({"tool_choice": named("get_weather")}, f"{OSLO}{OSLO} x", None, [("get_weather", {"city": "Oslo", "days": 3})]),
    ({"tool_choice": named("any")}, call("any", x="1", y="a b"), None, [("any", {"x": 1, "y": "a b"})]),
    ({"tool_choice": allowed("get_time")}, OSLO, None, [("get_time", {})]),
    ({"tool_choice": allowed("get_time", "any")}, f"{OSLO}", None, [("get_time", {})]),
    # A value that a type excludes, an argument that is not declared, and markup as data.
    (
        {"tool_choice": "required"},
        call("get_weather", city="x", days="many"),
        None,
        [("get_weather", {"city": "x", "days": 1})],
    ),
    ({"tool_choice": "required"}, call("get_weather", town="x"), None, [("get_weather", {"city": ""})]),
    (
        {"tool_choice": "required"},
        call("get_weather", city="<\ufdd0tool_call> <\ufdd0/arg_key> <\ufdd0arg_key>"),
        None,
        [("get_weather", {"city": "<tool_call> </arg_key> <arg_key>"})],
    ),
    # With "auto" the model may answer, and calls of strict tools are held to their parameters.
    (STRICT, "Just text, <b>.", "Just text, <b>.", []),
    (STRICT, "Write <\ufdd0tool_call>x here.", "Write <tool_call>x here.", []),
    (STRICT, f"Look: {OSLO}", "Look:", [("get_weather", {"city": "Oslo", "days": 3})]),
    (STRICT, call("get_weather", days="3"), None, [("get_weather", {"city": ""})]),
    (STRICT, call("get_time", zone="UTC"), None, [("get_time", {"zone": "UTC"})]),
]


@pytest.mark.parametrize("thinking", [False, True])
async def test_a_held_model_calls_as_it_must(start_gateway: Any, grammar_address: str, thinking: bool) -> None:
    gateway = await start_gateway(build_engine(grammar_address), grammar=grammar_address)
    for fields, said, content, calls in ROWS:
        thought = f"Why? {OSLO}</think>" if thinking else ""
        gateway.engine.wanted = build_engine("", want=thought + said).wanted
        body = BODY | {"thinking": thinking} | fields
        response = await gateway.post(CHAT, body)
        assert response.status_code == 200, (fields, response.text)
        (choice,) = response.json()["choices"]
        message = choice["message"]
        assert found(message) == (content, calls), (fields, said)
        assert choice["finish_reason"] == ("tool_calls" if calls else "stop")
        assert message.get("reasoning_content") == (f"Why? {OSLO}" if thinking else None)
        start = pb.GRAMMAR_START_AFTER_THINKING if thinking else pb.GRAMMAR_START_AT_ONCE
        assert gateway.engine.requests[-1].grammar.start == start
        deltas = [json.loads(event)["choices"][0]["delta"] for event in (await gateway.events(CHAT, body))[:-1]]
        joined: dict[str, Any] = {"content": "".join(delta.get("content", "") for delta in deltas) or None}
        joined["tool_calls"] = [part for delta in deltas for part in delta.get("tool_calls", [])]
        assert found(joined) == (content, calls), (fields, said)


def found(message: dict[str, Any]) -> tuple[str | None, Calls]:
    calls = [call["function"] for call in message.get("tool_calls", [])]
    return message["content"], [(call["name"], json.loads(call["arguments"])) for call in calls]


@pytest.mark.parametrize(
    ("choice", "offered"),
    [
        ("required", ["get_weather", "get_time", "any"]),
        (named("get_time"), ["get_time"]),
        (allowed("any", "get_time"), ["get_time", "any"]),
    ],
)
async def test_a_forced_choice_says_what_is_rendered_and_what_is_compiled(
    start_gateway: Any, grammar_address: str, choice: Any, offered: list[str]
) -> None:
    gateway = await start_gateway(build_engine(grammar_address), grammar=grammar_address)
    assert (await gateway.post(CHAT, BODY | {"tool_choice": choice})).status_code == 200
    request = gateway.engine.requests[-1]
    text = build_tokenizer().decode(list(request.prompt_token_ids), skip_special_tokens=False)
    assert [json.loads(line)["name"] for line in text.split("\n") if line.startswith("{")] == offered
    ids = (await gateway.post("/tokenize", BODY | {"tool_choice": choice})).json()["tokens"]
    assert ids == list(request.prompt_token_ids)
    source = source_of(request)
    assert request.grammar.kind == grammar_pb2.GRAMMAR_KIND_TOOL_CALLS
    assert [entry["function"]["name"] for entry in source["tools"]] == offered
    assert source["tool_choice"] == (choice if choice == named("get_time") else "required")


async def test_which_calls_are_held_to_their_parameters(start_gateway: Any, grammar_address: str) -> None:
    gateway = await start_gateway(build_engine(grammar_address), grammar=grammar_address)
    mixed = [tool(WEATHER, strict=True, description="Long."), tool(TIME, strict=False), tool(ANY)]
    for choice, stricts in (("auto", [True, False, False]), ("required", [True, False, None])):
        assert (await gateway.post(CHAT, BODY | {"tools": mixed, "tool_choice": choice})).status_code == 200
        source = source_of(gateway.engine.requests[-1])
        assert [entry["function"].get("strict") for entry in source["tools"]] == stricts
        assert source["tools"][0]["function"] == {
            "name": "get_weather",
            "parameters": WEATHER["parameters"],
            "strict": True,
        }


async def test_calls_that_may_not_be_parallel_are_compiled_so(start_gateway: Any, grammar_address: str) -> None:
    gateway = await start_gateway(build_engine(grammar_address, want=f"{OSLO}{OSLO}"), grammar=grammar_address)
    for fields in ({"tool_choice": "required"}, STRICT):
        for parallel, num_calls in ((True, 2), (False, 1), (None, 2)):
            body = BODY | fields | {"parallel_tool_calls": parallel, "return_token_ids": True}
            reply = (await gateway.post(CHAT, body)).json()
            assert source_of(gateway.engine.requests[-1])["parallel_tool_calls"] is (parallel is not False)
            # Not only left out of the reply: the model cannot write a second one.
            assert reply["choices"][0]["token_ids"].count(encode("<tool_call>")[0]) == num_calls


async def test_without_anything_to_hold_there_is_no_grammar(start_gateway: Any, grammar_address: str) -> None:
    gateway = await start_gateway(FakeEngine(FakeModel(context_length=8192)), grammar=grammar_address)
    named_strict = [tool(TIME), tool(WEATHER, strict=True)]
    bodies: list[dict[str, Any]] = [
        {},
        {"tools": [tool(WEATHER, strict=False)]},
        {"tools": named_strict, "tool_choice": "none"},
        {
            "tools": named_strict,
            "tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": [named("get_time")]}},
        },
    ]
    for fields in bodies:
        assert (await gateway.post(CHAT, BODY | {"max_tokens": 1} | fields)).status_code == 200
        assert not gateway.engine.requests[-1].HasField("grammar")


async def test_what_of_a_strict_tool_cannot_be_enforced_is_a_400_that_names_the_tool(
    start_gateway: Any, grammar_address: str
) -> None:
    gateway = await start_gateway(FakeEngine(FakeModel(context_length=8192)), grammar=grammar_address)
    parameters = {"type": "object", "properties": {"a": {"type": "array", "items": {}, "uniqueItems": True}}}
    tools = [tool(TIME), tool(ANY), tool({"name": "f", "parameters": parameters}, strict=True)]
    for choice in ("auto", "required", named("f"), allowed("f", "any")):
        response = await gateway.post(CHAT, BODY | {"tools": tools, "tool_choice": choice})
        error = response.json()["error"]
        assert (response.status_code, error["param"], error["code"]) == (400, "tools", "invalid_value"), error
        assert "uniqueItems at /tools/2/function/parameters/properties/a" in error["message"]
    assert gateway.engine.requests == []
    loose = [tool({"name": "f", "parameters": parameters})]
    gateway = await start_gateway(build_engine(grammar_address), grammar=grammar_address)
    assert (await gateway.post(CHAT, BODY | {"tools": loose, "tool_choice": "required"})).status_code == 200


@pytest.mark.parametrize(("choice", "is_rescued"), [("auto", True), ("required", False), (named("get_weather"), False)])
async def test_calls_inside_the_reasoning_are_rescued_only_where_the_model_chose_to_call(
    start_gateway: Any, grammar_address: str, choice: Any, is_rescued: bool
) -> None:
    engine = FakeEngine(FakeModel(context_length=8192), script=say(f"Why? {OSLO}<|observation|>"))
    gateway = await start_gateway(engine, grammar=grammar_address)
    (reply,) = (await gateway.post(CHAT, BODY | {"thinking": True, "tool_choice": choice})).json()["choices"]
    assert ("tool_calls" in reply["message"]) is is_rescued
    assert (OSLO in reply["message"]["reasoning_content"]) is not is_rescued


async def test_a_call_that_a_limit_cuts_is_no_call(start_gateway: Any, grammar_address: str) -> None:
    gateway = await start_gateway(build_engine(grammar_address, want=OSLO), grammar=grammar_address)
    (choice,) = (await gateway.post(CHAT, BODY | {"tool_choice": "required", "max_tokens": 20})).json()["choices"]
    assert choice["finish_reason"] == "length"
    assert "tool_calls" not in choice["message"]


async def test_a_tool_without_parameters_is_called_without_arguments(start_gateway: Any, grammar_address: str) -> None:
    said = call("bare", x="1")
    gateway = await start_gateway(build_engine(grammar_address, want=said), grammar=grammar_address)
    forced: dict[str, Any] = {"tool_choice": "required"}
    for fields, more, arguments in (
        (forced, {}, {}),
        (forced, {"parameters": None}, {}),
        (forced, {"strict": False}, {"x": 1}),
        ({}, {"strict": True}, {}),
        ({}, {}, {"x": 1}),
    ):
        body = BODY | {"tools": [tool(WEATHER, strict=True), tool({"name": "bare"}, **more)]} | fields
        (choice,) = (await gateway.post(CHAT, body)).json()["choices"]
        assert found(choice["message"]) == (None, [("bare", arguments)]), (fields, more)


@pytest.mark.parametrize("key", ["", " a", "a\n", "\u00a0"])
async def test_a_key_that_markup_cannot_hold_is_a_400_only_where_calls_are_held(
    start_gateway: Any, grammar_address: str, key: str
) -> None:
    gateway = await start_gateway(build_engine(grammar_address, want="Hi"), grammar=grammar_address)
    function = {"name": "f", "parameters": {"type": "object", "properties": {key: {}}, "required": [key]}}
    forced: dict[str, Any] = {"tool_choice": "required"}
    for fields, strict, status in (
        (forced, None, 400),
        (forced, True, 400),
        (forced, False, 200),
        ({}, True, 400),
        ({}, None, 200),
    ):
        response = await gateway.post(CHAT, BODY | {"tools": [tool(TIME), tool(function, strict=strict)]} | fields)
        assert response.status_code == status, (fields, strict, response.text)
        if status == 400:
            assert "'tools[1].function.parameters'" in response.json()["error"]["message"]
