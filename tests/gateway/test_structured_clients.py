"""Structured output and forced calls through the clients that people use, with a model that real masks hold."""

import asyncio
import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import anthropic
import openai
import pytest
from pydantic import BaseModel, Field

from support.constrained import build_engine

# Each import takes seconds.
pytestmark = pytest.mark.slow
HELLO: list[Any] = [{"role": "user", "content": "hello"}]


class Step(BaseModel):
    """A nested model."""

    text: str
    kind: Literal["start", "end"]


class Plan(BaseModel):
    """Nested, optional, literal, list."""

    title: str
    note: str | None
    score: float
    steps: list[Step]


class Node(BaseModel):
    """Recursive."""

    value: int
    children: list["Node"]


class Cat(BaseModel):
    """One branch of a union."""

    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    """The other."""

    kind: Literal["dog"]
    name: str


class Tagged(BaseModel):
    """A union that a tag decides: oneOf."""

    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


class Untagged(BaseModel):
    """A union of shapes: anyOf."""

    pets: list[Cat | Dog]


PLAN = '{"title":"a\\"é","note":null,"score":1.5,"steps":[{"text":"x","kind":"start"},{"text":"","kind":"end"}]}'
# A model, what the engine wants to say, and what must come of it; None: as it was said.
MODELS: list[tuple[type[BaseModel], str, str | None]] = [
    (Plan, PLAN, None),
    (Plan, '{"title":"a","note":5', '{"title":"a","note":"","score":1,"steps":[]}'),
    (Plan, "Sure!", '{"title":"","note":"","score":1,"steps":[]}'),
    (Node, '{"value":1,"children":[{"value":2,"children":[]}]}', None),
    (Node, '{"value":1,"children":[{"value":"x"', '{"value":1,"children":[{"value":1,"children":[]}]}'),
    (Tagged, '{"pet":{"kind":"dog","name":"Rex"}}', None),
    (Tagged, '{"pet":{"kind":"dog","lives":9', '{"pet":{"kind":"dog","name":""}}'),
    (Untagged, '{"pets":[{"kind":"cat","lives":9},{"kind":"dog","name":"R"}]}', None),
]


def say(gateway: Any, text: str) -> None:
    gateway.engine.wanted = build_engine("", want=f"Hm.</think>{text}").wanted


async def start(start_gateway: Any, grammar_address: str) -> Any:
    return await start_gateway(build_engine(grammar_address), grammar=grammar_address)


def connect(gateway: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="local", max_retries=0)


@pytest.mark.parametrize(("model", "said", "wanted"), MODELS)
async def test_parse_gives_models_whole_and_streamed_with_both_clients(
    start_gateway: Any, grammar_address: str, model: type[BaseModel], said: str, wanted: str | None
) -> None:
    gateway = await start(start_gateway, grammar_address)
    say(gateway, said)
    expected = model.model_validate_json(wanted or said)
    request: Any = {"model": "tiny", "messages": HELLO, "response_format": model}
    async with connect(gateway) as client:
        completion: Any = await client.chat.completions.parse(**request)
        assert completion.choices[0].message.parsed == expected
        assert completion.choices[0].finish_reason == "stop"
        async with client.chat.completions.stream(**request) as stream:
            final: Any = await stream.get_final_completion()
        assert final.choices[0].message.parsed == expected
        assert final.choices[0].message.content == completion.choices[0].message.content
        response: Any = await client.responses.parse(model="tiny", input="hello", text_format=model)
        assert response.output_parsed == expected
    assert await asyncio.to_thread(parse_blocking, gateway.url, request) == expected


def parse_blocking(url: str, request: Any) -> Any:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="local", max_retries=0) as client:
        completion: Any = client.chat.completions.parse(**request)
        with client.chat.completions.stream(**request) as stream:
            final: Any = stream.get_final_completion()
        assert final.choices[0].message.parsed == completion.choices[0].message.parsed
        return completion.choices[0].message.parsed


async def test_parse_of_a_value_that_is_cut_raises_what_it_should(start_gateway: Any, grammar_address: str) -> None:
    gateway = await start(start_gateway, grammar_address)
    say(gateway, PLAN)
    async with connect(gateway) as client:
        with pytest.raises(openai.LengthFinishReasonError):
            await client.chat.completions.parse(model="tiny", messages=HELLO, response_format=Plan, max_tokens=12)


class GetWeather(BaseModel):
    """The weather in a city."""

    city: str
    days: int


CALL = "<tool_call>GetWeather<arg_key>city</arg_key><arg_value>Oslo</arg_value><arg_key>days</arg_key><arg_value>{}"
ENDED = "</arg_value></tool_call>"


async def test_pydantic_tools_are_strict_and_their_arguments_parsed(start_gateway: Any, grammar_address: str) -> None:
    gateway = await start(start_gateway, grammar_address)
    tools = [openai.pydantic_function_tool(GetWeather)]
    async with connect(gateway) as client:
        for days, found in (("3", 3), ("three", 1)):
            say(gateway, CALL.format(days) + ENDED)
            completion = await client.chat.completions.parse(model="tiny", messages=HELLO, tools=tools)
            (call,) = completion.choices[0].message.tool_calls or []
            assert call.function.parsed_arguments == GetWeather(city="Oslo", days=found)
            assert completion.choices[0].finish_reason == "tool_calls"


@pytest.fixture
def litellm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The library, without its look at the network for a list of prices."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm as library

    yield library
    # Its clients belong to the event loop of one test.
    library.in_memory_llm_clients_cache.flush_cache()


async def test_litellm_formats_and_forces(start_gateway: Any, grammar_address: str, litellm: Any) -> None:
    gateway = await start(start_gateway, grammar_address)
    request = {"model": "openai/tiny", "api_base": f"{gateway.url}/v1", "api_key": "local", "messages": HELLO}
    say(gateway, PLAN)
    reply = await litellm.acompletion(**request, response_format=Plan)
    assert Plan.model_validate_json(reply.choices[0].message.content) == Plan.model_validate_json(PLAN)
    reply = await litellm.acompletion(**request, response_format={"type": "json_object"}, stream=True)
    text = "".join([chunk.choices[0].delta.content or "" async for chunk in reply])
    assert json.loads(text) == json.loads(PLAN)
    say(gateway, "No.")
    tools = [openai.pydantic_function_tool(GetWeather)]
    for choice in ("required", {"type": "function", "function": {"name": "GetWeather"}}):
        reply = await litellm.acompletion(**request, tools=tools, tool_choice=choice)
        (call,) = reply.choices[0].message.tool_calls
        assert (call.function.name, json.loads(call.function.arguments)) == ("GetWeather", {"city": "", "days": 1})


async def test_langchain_structures_and_binds(start_gateway: Any, grammar_address: str) -> None:
    from langchain_openai import ChatOpenAI

    gateway = await start(start_gateway, grammar_address)
    settings: Any = {"base_url": f"{gateway.url}/v1", "api_key": "local", "model": "tiny", "max_retries": 0}
    chat = ChatOpenAI(**settings)
    say(gateway, PLAN)
    expected = Plan.model_validate_json(PLAN)
    assert await chat.with_structured_output(Plan, method="json_schema").ainvoke("hello") == expected
    assert await chat.with_structured_output(None, method="json_mode").ainvoke("hello") == json.loads(PLAN)
    say(gateway, CALL.format("3") + ENDED)
    weather = GetWeather(city="Oslo", days=3)
    assert await chat.with_structured_output(GetWeather, method="function_calling").ainvoke("hello") == weather
    say(gateway, "No.")
    for choice in ("any", "required", "GetWeather", True):
        bound = chat.bind_tools([GetWeather], tool_choice=choice)
        (call,) = (await bound.ainvoke("hello")).tool_calls
        assert (call["name"], call["args"]) == ("GetWeather", {"city": "", "days": 1})
    total: Any = None
    async for chunk in chat.bind_tools([GetWeather], tool_choice="any", strict=True).astream("hello"):
        total = chunk if total is None else total + chunk
    assert total.tool_calls[0]["args"] == {"city": "", "days": 1}


async def test_the_anthropic_client_forces_calls_and_formats(start_gateway: Any, grammar_address: str) -> None:
    gateway = await start(start_gateway, grammar_address)
    schema = GetWeather.model_json_schema()
    tools: Any = [
        {"name": "GetWeather", "input_schema": schema},
        {"name": "look", "input_schema": {"type": "object", "properties": {}}},
    ]
    request: dict[str, Any] = {"model": "tiny", "messages": HELLO, "max_tokens": 200}
    gateway.engine.wanted = build_engine("", want="No.").wanted
    async with anthropic.AsyncAnthropic(base_url=gateway.url, api_key="local", max_retries=0) as client:
        picks: list[tuple[Any, str, Any]] = [
            ({"type": "any"}, "GetWeather", {"city": "", "days": 1}),
            ({"type": "tool", "name": "look"}, "look", {}),
            ({"type": "any", "disable_parallel_tool_use": True}, "GetWeather", {"city": "", "days": 1}),
        ]
        for choice, name, arguments in picks:
            message = await client.messages.create(**request, tools=tools, tool_choice=choice)
            (block,) = message.content
            assert block.type == "tool_use"
            assert (block.name, block.input, message.stop_reason) == (name, arguments, "tool_use")
            async with client.messages.stream(**request, tools=tools, tool_choice=choice) as stream:
                final = await stream.get_final_message()
            assert [(part.name, part.input) for part in final.content if part.type == "tool_use"] == [(name, arguments)]
        form: Any = {"format": {"type": "json_schema", "schema": schema | {"additionalProperties": False}}}
        message = await client.messages.create(**request, output_config=form)
        assert [json.loads(block.text) for block in message.content if block.type == "text"] == [
            {"city": "", "days": 1}
        ]
        with pytest.raises(anthropic.BadRequestError, match="does not offer"):
            await client.messages.create(**request, tools=tools, tool_choice={"type": "tool", "name": "no"})
