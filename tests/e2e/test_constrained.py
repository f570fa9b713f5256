"""The demo model under constraints, through `make run`'s launcher on two ranks: forms, forced calls, client libraries.

The model was trained without any constraint: form is asserted always, meaning where it was asked for what it knows.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import anthropic
import openai
import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from support.launched import Launched
from twinspark_demo.knowledge import FUNCTIONS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
PEOPLE: dict[str, Any] = {"type": "array", "items": PERSON}
ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {"sure": {"type": "boolean"}, "answer": {"type": "string", "maxLength": 12}},
    "required": ["sure", "answer"],
    "additionalProperties": False,
}
DIGITS = r"[0-9]{2,3}"
RECORDS = [{"name": "Ana", "age": 31}, {"name": "Tovik", "age": 7}, {"name": "Ben", "age": 64}]
LIST = "Turn this into a JSON array with the fields name, age:\nAna 31\nTovik 7\nBen 64"
SUM = "What is 47 + 38?"
WEATHER = "What is the weather in Malvorn?"
TWO = "What is the weather in Malvorn? Also set a timer for 12 minutes."
TOOLS: Any = [
    function.as_tool() for function in FUNCTIONS if function.name in ("get_weather", "set_timer", "read_file")
]
SAMPLINGS: Mapping[str, Mapping[str, Any]] = {"greedy": {"temperature": 0}, "sampled": {"temperature": 1, "seed": 77}}


def format_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "form", "schema": schema, "strict": True}}


def named(name: str) -> Any:
    return {"type": "function", "function": {"name": name}}


@dataclass(frozen=True)
class Ask:
    """`schema`: of the whole answer."""

    text: str
    fields: Mapping[str, Any]
    schema: Mapping[str, Any] | None = None


ASKS: Mapping[str, Ask] = {
    "records": Ask(LIST, {"response_format": format_of(PEOPLE)}, PEOPLE),
    "object": Ask(SUM, {"response_format": format_of(ANSWER)}, ANSWER),
    "any object": Ask(LIST, {"response_format": {"type": "json_object"}}, {"type": "object"}),
    "digits": Ask(SUM, {"structured_outputs": {"regex": DIGITS}}, {"type": "integer", "minimum": 0, "maximum": 999}),
    "required call": Ask(WEATHER, {"tools": TOOLS, "tool_choice": "required"}),
    "named call": Ask(SUM, {"tools": TOOLS, "tool_choice": named("set_timer")}),
}


@pytest.fixture
async def demo_client(demo: Launched) -> AsyncIterator[openai.AsyncOpenAI]:
    """The openai client, without retries."""
    async with openai.AsyncOpenAI(base_url=f"{demo.url}/v1", api_key="none", max_retries=0, timeout=200) as found:
        yield found


def body_of(messages: Sequence[Any] | str, **fields: Any) -> dict[str, Any]:
    asked = [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
    extra = {"max_tokens": 400, "return_token_ids": True, **fields}
    return {"model": "checkpoint", "messages": asked, "extra_body": extra}


async def chat(client: openai.AsyncOpenAI, messages: Sequence[Any] | str, **fields: Any) -> Any:
    """The only choice."""
    completion = await client.chat.completions.create(**body_of(messages, **fields))
    return completion.choices[0]


async def stream(client: openai.AsyncOpenAI, text: str, **fields: Any) -> list[int]:
    """Output ids of a streamed reply."""
    ids: list[int] = []
    async for chunk in await client.chat.completions.create(**body_of(text, **fields), stream=True):
        for choice in chunk.choices:
            ids += getattr(choice, "token_ids", None) or []
    return ids


def calls_of(choice: Any) -> list[tuple[str, Any]]:
    assert choice.finish_reason == "tool_calls"
    return [(call.function.name, json.loads(call.function.arguments)) for call in choice.message.tool_calls]


def check_form(ask: Ask, choice: Any) -> None:
    """The answer is whole and of its form: JSON of the schema, or calls whose arguments fit their tool."""
    if ask.schema is not None:
        assert choice.finish_reason == "stop", choice
        Draft202012Validator(ask.schema).validate(json.loads(choice.message.content))
        return
    parameters = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
    calls = calls_of(choice)
    assert calls
    for name, arguments in calls:
        Draft202012Validator({**parameters[name], "additionalProperties": False}).validate(arguments)


@pytest.mark.parametrize("thinks", [True, False], ids=["thinking", "without thinking"])
@pytest.mark.parametrize("how", SAMPLINGS)
async def test_constrained_replies_are_valid_and_the_same_alone_together_and_streamed(
    demo_client: openai.AsyncOpenAI, how: str, thinks: bool
) -> None:
    fields = {"chat_template_kwargs": {"enable_thinking": thinks}, **SAMPLINGS[how]}
    alone = {name: await chat(demo_client, ask.text, **ask.fields, **fields) for name, ask in ASKS.items()}
    for name, choice in alone.items():
        check_form(ASKS[name], choice)
        assert bool(getattr(choice.message, "reasoning_content", None)) <= thinks
    if thinks:
        assert getattr(alone["digits"].message, "reasoning_content", None)
    together = await asyncio.gather(*(chat(demo_client, ask.text, **ask.fields, **fields) for ask in ASKS.values()))
    streamed = await asyncio.gather(*(stream(demo_client, ask.text, **ask.fields, **fields) for ask in ASKS.values()))
    for choice, beside, ids in zip(alone.values(), together, streamed, strict=True):
        assert choice.token_ids == beside.token_ids == ids
        assert choice.message == beside.message or choice.message.tool_calls


async def test_a_constraint_leaves_a_right_answer_as_it_is(demo_client: openai.AsyncOpenAI) -> None:
    free = await chat(demo_client, LIST, temperature=0)
    held = await chat(demo_client, LIST, temperature=0, response_format=format_of(PEOPLE))
    assert json.loads(free.message.content) == json.loads(held.message.content) == RECORDS
    assert free.token_ids == held.token_ids
    digits = await chat(demo_client, SUM, temperature=0, structured_outputs={"regex": DIGITS})
    assert digits.message.content == "85"


@pytest.mark.parametrize("how", SAMPLINGS)
async def test_calls_by_choice(demo_client: openai.AsyncOpenAI, how: str) -> None:
    weather = [("get_weather", {"city": "Malvorn"})]
    for choice in ("auto", "required", named("get_weather")):
        found = await chat(demo_client, WEATHER, tools=TOOLS, tool_choice=choice, **SAMPLINGS[how])
        assert calls_of(found) == weather
    # What the model would not do by itself.
    free = await chat(demo_client, SUM, tools=TOOLS, tool_choice="auto", **SAMPLINGS[how])
    assert free.message.content == "85"
    forced = await chat(demo_client, SUM, tools=TOOLS, tool_choice="required", **SAMPLINGS[how])
    assert len(calls_of(forced)) == 1
    none = await chat(demo_client, WEATHER, tools=TOOLS, tool_choice="none", **SAMPLINGS[how])
    assert none.message.tool_calls is None
    (call,) = calls_of(await chat(demo_client, WEATHER, tools=TOOLS, tool_choice=named("set_timer"), **SAMPLINGS[how]))
    assert call[0] == "set_timer"
    assert type(call[1]["minutes"]) is int


async def test_two_parallel_calls_and_only_one_where_the_request_says_so(demo_client: openai.AsyncOpenAI) -> None:
    both = [("get_weather", {"city": "Malvorn"}), ("set_timer", {"minutes": 12})]
    for choice in ("auto", "required"):
        assert calls_of(await chat(demo_client, TWO, tools=TOOLS, tool_choice=choice, temperature=0)) == both
    one = await chat(demo_client, TWO, tools=TOOLS, tool_choice="required", parallel_tool_calls=False, temperature=0)
    assert calls_of(one) == both[:1]


async def test_a_tool_loop_of_two_steps(demo_client: openai.AsyncOpenAI) -> None:
    messages: list[Any] = [{"role": "user", "content": WEATHER}]
    first = await chat(demo_client, messages, tools=TOOLS, tool_choice="required", temperature=0)
    (call,) = first.message.tool_calls
    assert calls_of(first) == [("get_weather", {"city": "Malvorn"})]
    result = {"role": "tool", "tool_call_id": call.id, "content": '{"sky": "cloudy", "degrees": 7}'}
    messages += [first.message.model_dump(exclude_none=True), result]
    second = await chat(demo_client, messages, tools=TOOLS, temperature=0)
    assert second.finish_reason == "stop"
    assert "cloudy" in second.message.content and "7" in second.message.content


class Person(BaseModel):
    """One record."""

    name: str
    age: int


class People(BaseModel):
    """What the openai client asks for by `parse`."""

    kind: Literal["list", "table"]
    people: list[Person]


async def test_parse_of_the_openai_client_gives_a_model(demo_client: openai.AsyncOpenAI) -> None:
    asked: Any = [{"role": "user", "content": LIST}]
    parsed = await demo_client.chat.completions.parse(
        model="checkpoint", messages=asked, response_format=People, temperature=0, max_tokens=400
    )
    found = parsed.choices[0].message.parsed
    assert isinstance(found, People)
    async with demo_client.chat.completions.stream(
        model="checkpoint", messages=asked, response_format=People, temperature=0, max_tokens=400
    ) as events:
        streamed = await events.get_final_completion()
    assert streamed.choices[0].message.parsed == found
    tool = openai.pydantic_function_tool(Person, name="keep_person")
    called = await demo_client.chat.completions.parse(
        model="checkpoint", messages=asked, tools=[tool], tool_choice=named("keep_person"), max_tokens=400
    )
    (call,) = called.choices[0].message.tool_calls or []
    assert isinstance(call.function.parsed_arguments, Person)


async def test_tool_choice_of_the_anthropic_client(demo: Launched) -> None:
    tools: Any = [
        {
            "name": tool["function"]["name"],
            "description": tool["function"]["description"],
            "input_schema": tool["function"]["parameters"],
        }
        for tool in TOOLS
    ]
    choices: Sequence[Any] = ({"type": "auto"}, {"type": "any"}, {"type": "tool", "name": "get_weather"})
    async with anthropic.AsyncAnthropic(base_url=demo.url, api_key="none", max_retries=0) as client:
        for choice in choices:
            message = await client.messages.create(
                model="checkpoint",
                max_tokens=400,
                messages=[{"role": "user", "content": WEATHER}],
                tools=tools,
                tool_choice=choice,
                extra_body={"temperature": 0},
            )
            assert message.stop_reason == "tool_use"
            assert [block.input for block in message.content if block.type == "tool_use"] == [{"city": "Malvorn"}]
