"""Requests with tools: what is rendered, what is refused, how choices and limits meet calls."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from fakes.engine import FakeEngine
from fakes.engine_model import FakeModel
from support.scripts import encode, say
from support.tiny_tokenizer import build_tokenizer, write_folder
from twinspark.engine.v1 import engine_pb2 as pb

CHAT = "/v1/chat/completions"
USER = {"role": "user", "content": "hello"}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Says <tool_call> & <|user|>.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "Ort: Tromsø"}}},
    },
}
TIME = {"type": "function", "function": {"name": "get_time"}}
TOOLS = [WEATHER, TIME]
CALL = "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Oslo</arg_value></tool_call>"
BODY: dict[str, Any] = {"messages": [USER], "tools": TOOLS}


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def allowed(mode: str, *names: str) -> dict[str, Any]:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [named(name) for name in names]}}


async def start(start_gateway: Any, script: Any = None, **settings: Any) -> Any:
    """Start a gateway whose engine has room for tools."""
    return await start_gateway(FakeEngine(FakeModel(context_length=8192, num_slots=4), script=script), **settings)


async def prompt_of(gateway: Any, **fields: Any) -> str:
    """Give the text of the prompt that the engine gets; /tokenize has the same."""
    response = await gateway.post(CHAT, BODY | {"max_tokens": 1} | fields)
    assert response.status_code == 200, response.text
    ids = list(gateway.engine.requests[-1].prompt_token_ids)
    assert (await gateway.post("/tokenize", BODY | fields)).json()["tokens"] == ids
    assert response.json()["usage"]["prompt_tokens"] == len(ids)
    return str(build_tokenizer().decode(ids, skip_special_tokens=False))


async def test_tools_are_rendered_as_they_were_given_and_typed_markup_stays_text(start_gateway: Any) -> None:
    gateway = await start(start_gateway)
    text = await prompt_of(gateway)
    for tool in TOOLS:
        assert f"\n{json.dumps(tool['function'], ensure_ascii=False)}\n" in text
    ids = list(gateway.engine.requests[-1].prompt_token_ids)
    # The template's own example of a call, and nothing of the description.
    assert ids.count(encode("<tool_call>")[0]) == 1
    assert ids.count(encode("<|user|>")[0]) == 1


@pytest.mark.parametrize(
    ("fields", "offered"),
    [
        ({}, ["get_weather", "get_time"]),
        ({"tool_choice": None}, ["get_weather", "get_time"]),
        ({"tool_choice": "auto"}, ["get_weather", "get_time"]),
        ({"tool_choice": "none"}, []),
        ({"tool_choice": allowed("auto", "get_time")}, ["get_time"]),
        ({"tool_choice": allowed("auto", "get_time", "get_weather", "get_time")}, ["get_weather", "get_time"]),
        ({"tools": []}, []),
        ({"tools": None}, []),
        ({"tools": [], "tool_choice": "auto", "parallel_tool_calls": False}, []),
        ({"tools": [{"function": {"name": "untyped", "parameters": None, "strict": False}}]}, ["untyped"]),
        ({"tools": [{**TIME, "function": {"name": "held", "strict": True}}], "tool_choice": "none"}, []),
        (
            {
                "tools": [TIME, {"function": {"name": "held", "strict": True}}],
                "tool_choice": allowed("auto", "get_time"),
            },
            ["get_time"],
        ),
    ],
)
async def test_the_choice_says_what_is_rendered(start_gateway: Any, fields: dict[str, Any], offered: list[str]) -> None:
    text = await prompt_of(await start(start_gateway), **fields)
    names = [json.loads(line)["name"] for line in text.split("\n") if line.startswith("{")]
    assert names == offered
    assert ("# Tools" in text) == bool(offered)


LONG = "x" * 65
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"tools": 5}, "tools", "'tools' must be a list"),
    ({"tools": ["f"]}, "tools", "'tools[0]' must be an object"),
    ({"tools": [TIME, None]}, "tools", "'tools[1]' must be an object"),
    ({"tools": [{"type": "web_search"}]}, "tools", '\'tools[0].type\' must be "function" (got "web_search")'),
    ({"tools": [{"type": 1, "function": {"name": "f"}}]}, "tools", "'tools[0].type'"),
    ({"tools": [{"type": "function"}]}, "tools", "'tools[0].function' must be an object"),
    ({"tools": [{"type": "function", "function": {}}]}, "tools", "'tools[0].function.name'"),
    ({"tools": [named("")]}, "tools", "'tools[0].function.name'"),
    ({"tools": [named("a b")]}, "tools", "'tools[0].function.name'"),
    ({"tools": [named("é")]}, "tools", "'tools[0].function.name'"),
    ({"tools": [named("<think>")]}, "tools", "'tools[0].function.name'"),
    ({"tools": [named(LONG)]}, "tools", "1 to 64 letters"),
    ({"tools": [TIME, TIME]}, "tools", "'tools[1].function.name' is the name of another tool (\"get_time\")"),
    (
        {"tools": [{"function": {"name": "f", "description": 5}}]},
        "tools",
        "'tools[0].function.description' must be a string",
    ),
    (
        {"tools": [{"function": {"name": "f", "strict": "yes"}}]},
        "tools",
        "'tools[0].function.strict' must be a boolean",
    ),
    (
        {"tools": [{"function": {"name": "f", "parameters": []}}]},
        "tools",
        "'tools[0].function.parameters' must be a JSON schema",
    ),
    (
        {"tools": [{"function": {"name": "f", "parameters": {"type": "array"}}}]},
        "tools",
        "'tools[0].function.parameters.type'",
    ),
    ({"tool_choice": "any"}, "tool_choice", '"none", "auto", "required"'),
    ({"tool_choice": 1}, "tool_choice", "'tool_choice' must be"),
    ({"tool_choice": {}}, "tool_choice", "'tool_choice.type'"),
    ({"tool_choice": {"type": "tool", "name": "get_time"}}, "tool_choice", "'tool_choice.type'"),
    ({"tool_choice": {"type": "function"}}, "tool_choice", "'tool_choice.function.name' must be the name of a tool"),
    ({"tool_choice": {"type": "function", "function": {"name": 1}}}, "tool_choice", "'tool_choice.function.name'"),
    ({"tool_choice": named("launch")}, "tool_choice", 'is "launch", which the request does not offer'),
    ({"tool_choice": named("get_time"), "tools": None}, "tool_choice", "does not offer"),
    ({"tool_choice": "required", "tools": []}, "tool_choice", "\"required\" needs 'tools'"),
    ({"tool_choice": {"type": "allowed_tools"}}, "tool_choice", "'tool_choice.allowed_tools' must be an object"),
    ({"tool_choice": allowed("auto")}, "tool_choice", "'tool_choice.allowed_tools.tools' must be a non-empty list"),
    ({"tool_choice": allowed("any", "get_time")}, "tool_choice", "'tool_choice.allowed_tools.mode'"),
    ({"tool_choice": allowed("auto", "launch")}, "tool_choice", "does not offer"),
    ({"tool_choice": allowed("required", "launch")}, "tool_choice", "does not offer"),
    ({"parallel_tool_calls": "no"}, "parallel_tool_calls", "a boolean"),
    ({"functions": [{"name": "f b"}], "tools": None}, "functions", "'functions[0].name' must be"),
    (
        {"functions": [{"name": "h"}], "function_call": {"name": "k"}, "tools": None},
        "function_call",
        "'function_call.name' is \"k\"",
    ),
    ({"functions": [{"name": "h"}], "tools": [{"function": {"name": "h"}}]}, "functions", "beside 'tools'"),
    ({"functions": [{"name": "h"}], "tools": [], "tool_choice": "auto"}, "functions", "beside 'tool_choice'"),
    ({"function_call": "auto", "tools": [{"function": {"name": "h"}}]}, "function_call", "beside 'tools'"),
]


async def test_what_cannot_be_offered_is_a_400_that_says_where_and_why(start_gateway: Any) -> None:
    gateway = await start(start_gateway)
    for fields, param, said in REFUSED:
        for stream in (False, True):
            response = await gateway.post(CHAT, BODY | {"stream": stream} | fields)
            error = response.json()["error"]
            assert (response.status_code, error["param"], error["type"]) == (400, param, "invalid_request_error"), (
                fields
            )
            assert said in error["message"], error
            assert error["code"] == "invalid_value"
        if param in ("tools", "tool_choice"):
            assert (await gateway.post("/tokenize", BODY | fields)).status_code == 400, fields
    assert gateway.engine.requests == []


@pytest.mark.parametrize("template", [False, True])
async def test_a_checkpoint_that_knows_no_tools_says_so(start_gateway: Any, tmp_path: Any, template: bool) -> None:
    folder = write_folder(tmp_path / "m")
    if template:
        (folder / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    else:
        text = (folder / "tokenizer.json").read_text()
        (folder / "tokenizer.json").write_text(text.replace("<arg_key>", "<key>"))
    gateway = await start(start_gateway, model=folder)
    error = (await gateway.post(CHAT, BODY)).json()["error"]
    assert (error["param"], error["code"]) == ("tools", "no_tools")
    assert (await gateway.post(CHAT, BODY | {"tool_choice": "none", "max_tokens": 1})).status_code == 200


async def test_each_choice_has_its_own_calls(start_gateway: Any) -> None:
    def script(request: pb.GenerateRequest) -> Sequence[int]:
        texts = (f"a</think>{CALL}", "b</think>Hi", f"c{CALL}{CALL}<|observation|>")
        return encode(texts[request.sampling.seed_offset] + "<|user|>")

    gateway = await start(start_gateway, script)
    body = BODY | {"n": 3}
    whole = (await gateway.post(CHAT, body)).json()["choices"]
    assert [choice["finish_reason"] for choice in whole] == ["tool_calls", "stop", "tool_calls"]
    assert [len(choice["message"].get("tool_calls", [])) for choice in whole] == [1, 0, 2]
    assert [choice["message"]["content"] for choice in whole] == [None, "Hi", None]
    events = [json.loads(event) for event in (await gateway.events(CHAT, body))[:-1]]
    for index, choice in enumerate(whole):
        deltas = [event["choices"][0] for event in events if event["choices"][0]["index"] == index]
        calls = [call for delta in deltas for call in delta["delta"].get("tool_calls", [])]
        assert [call["index"] for call in calls] == list(range(len(choice["message"].get("tool_calls", []))))
        assert [call["function"] for call in calls] == [
            call["function"] for call in choice["message"].get("tool_calls", [])
        ]
        assert [delta["finish_reason"] for delta in deltas if delta["finish_reason"]] == [choice["finish_reason"]]


async def test_log_probabilities_cover_the_visible_text_and_ids_cover_all(start_gateway: Any) -> None:
    gateway = await start(start_gateway, say(f"why</think>Look. {CALL} ok"))
    body = BODY | {"logprobs": True, "return_token_ids": True}
    choice = (await gateway.post(CHAT, body)).json()["choices"][0]
    listed = [entry["token"] for entry in choice["logprobs"]["content"]]
    assert "".join(listed) == choice["message"]["content"] == "Look. ok"
    assert choice["token_ids"] == encode(f"why</think>Look. {CALL} ok<|user|>")
    events = [json.loads(event) for event in (await gateway.events(CHAT, body))[:-1]]
    parts = [event["choices"][0] for event in events]
    assert [token for part in parts for token in part.get("token_ids", [])] == choice["token_ids"]
    entries = [entry for part in parts if part["logprobs"] for entry in part["logprobs"]["content"]]
    assert entries == choice["logprobs"]["content"]


async def test_a_reply_of_calls_alone_has_no_log_probabilities_whole_and_streamed(start_gateway: Any) -> None:
    gateway = await start(start_gateway, say(f"why</think>{CALL}"))
    body = BODY | {"logprobs": True}
    choice = (await gateway.post(CHAT, body)).json()["choices"][0]
    events = [json.loads(event)["choices"][0] for event in (await gateway.events(CHAT, body))[:-1]]
    assert choice["message"]["tool_calls"]
    assert [choice["logprobs"], *(event["logprobs"] for event in events)] == [None] * (len(events) + 1)


async def test_a_finished_call_is_streamed_before_the_reply_goes_on(start_gateway: Any) -> None:
    engine = FakeEngine(FakeModel(context_length=8192), script=say(f"</think>{CALL} and more"))
    gateway = await start_gateway(engine)
    events = [json.loads(event)["choices"][0]["delta"] for event in (await gateway.events(CHAT, BODY))[:-1]]
    kinds = [next(iter(delta), None) for delta in events]
    assert kinds[1] == "tool_calls"
    assert set(kinds[2:-1]) == {"content"}


async def test_a_reply_goes_back_as_it_came(start_gateway: Any) -> None:
    """The next prompt begins with the prompt and the reply that it follows: nothing has to be computed again."""
    gateway = await start(start_gateway, say(f"why</think>Look.{CALL}<|observation|>"))
    reply = (await gateway.post(CHAT, BODY | {"return_token_ids": True})).json()
    message = reply["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": None}
    await gateway.post(CHAT, BODY | {"messages": [USER, message, result], "max_tokens": 1})
    prompt = list(gateway.engine.requests[-1].prompt_token_ids)
    begun = [*reply["prompt_token_ids"], *reply["choices"][0]["token_ids"]]
    assert prompt[: len(begun)] == begun
    text = build_tokenizer().decode(prompt[len(begun) :], skip_special_tokens=False)
    assert text == "<tool_response></tool_response><|assistant|><think>"
    assert "None" not in build_tokenizer().decode(prompt)


async def test_calls_are_counted_like_any_output_also_those_that_are_dropped(start_gateway: Any) -> None:
    gateway = await start(start_gateway, say(f"why</think>{CALL}{CALL}"))
    usage = (await gateway.post(CHAT, BODY | {"parallel_tool_calls": False})).json()["usage"]
    assert usage["completion_tokens"] == len(encode(f"why</think>{CALL}{CALL}<|user|>"))
    assert usage["completion_tokens_details"]["reasoning_tokens"] == len(encode("why</think>"))


@pytest.mark.parametrize("text", ["x", "<think>"])
async def test_what_is_nested_too_deeply_is_a_400(start_gateway: Any, text: str) -> None:
    gateway = await start(start_gateway)
    for depth in (100, 500, 900):
        deep = '{"a":' * depth + f'"{text}"' + "}" * depth
        call = f'{{"role":"assistant","tool_calls":[{{"function":{{"name":"f","arguments":{deep}}}}}]}}'
        for messages, parameters in ((json.dumps(USER), f'{{"x":{deep}}}'), (f"{json.dumps(USER)},{call}", "{}")):
            tools = f'[{{"function":{{"name":"f","parameters":{parameters}}}}}]'
            body = f'{{"messages":[{messages}],"tools":{tools},"max_tokens":1}}'
            response = await gateway.client.post(CHAT, content=body)
            assert response.status_code == (200 if depth == 100 else 400), response.text


async def test_a_value_that_is_nested_too_deeply_stays_text(start_gateway: Any) -> None:
    tools = [{"function": {"name": "f", "parameters": {"properties": {"x": {"type": "array"}, "y": {}}}}}]
    for depth, is_json in ((200, True), (201, False), (900, False), (3000, False)):
        deep = "[" * depth + "]" * depth
        written = "".join(f"<arg_key>{key}</arg_key><arg_value>{deep}</arg_value>" for key in "xy")
        engine = FakeEngine(
            FakeModel(context_length=30_000),
            script=say(f"</think><tool_call>f{written}</tool_call>"),
            tokens_per_step=999,
        )
        gateway = await start_gateway(engine)
        message = (await gateway.post(CHAT, BODY | {"tools": tools})).json()["choices"][0]["message"]
        arguments = message["tool_calls"][0]["function"]["arguments"]
        assert arguments == (
            f'{{"x":{deep},"y":{deep}}}' if is_json else json.dumps({"x": deep, "y": deep}, separators=(",", ":"))
        )
