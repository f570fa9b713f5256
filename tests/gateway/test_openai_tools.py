"""The openai client's ordinary paths with tools: sync and async, whole, streamed, its streaming helper, a tool loop."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion

from fakes.engine import FakeEngine
from fakes.engine_model import FakeModel
from support.scripts import encode
from support.tiny_tokenizer import build_tokenizer
from twinspark.engine.v1 import engine_pb2 as pb

CITY = "<tool_call>get_weather<arg_key>city</arg_key><arg_value>{}</arg_value></tool_call>"
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather in a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
ASKED: Any = [{"role": "user", "content": "Weather in Oslo and Tromsø?"}]
REQUEST: dict[str, Any] = {"model": "tiny", "messages": ASKED, "tools": TOOLS}
CALLS = [("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Tromsø"})]


def answer(request: pb.GenerateRequest) -> Sequence[int]:
    """Call twice; with two results in the prompt tell them."""
    prompt = build_tokenizer().decode(list(request.prompt_token_ids), skip_special_tokens=False)
    if "<tool_response>" in prompt:
        return encode("I know now.</think>Sun and rain.<|user|>")
    return encode(f"Two cities.</think>Let me look.\n{CITY.format('Oslo')}\n{CITY.format('Tromsø')}<|observation|>")


@pytest.fixture
async def url(start_gateway: Any) -> str:
    """Address of a gateway whose engine calls tools, two tokens a step."""
    engine = FakeEngine(FakeModel(context_length=8192), script=answer, tokens_per_step=2)
    return f"{(await start_gateway(engine)).url}/v1"


def connect(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=url, api_key="local", max_retries=0)


def check(completion: ChatCompletion) -> None:
    """Check that a reply is the one that calls twice."""
    (choice,) = completion.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Let me look."
    calls = choice.message.tool_calls or []
    assert [call.type for call in calls] == ["function", "function"]
    found = [(call.function.name, json.loads(call.function.arguments)) for call in calls if call.type == "function"]
    assert found == CALLS
    assert len({call.id for call in calls}) == 2


async def test_a_whole_reply(url: str) -> None:
    async with connect(url) as client:
        check(await client.chat.completions.create(**REQUEST))
        check(await client.chat.completions.create(**REQUEST, tool_choice="auto", parallel_tool_calls=True))
        none = await client.chat.completions.create(**REQUEST, tool_choice="none")
        assert none.choices[0].message.tool_calls is None
        assert "<tool_call>" in (none.choices[0].message.content or "")


async def test_a_stream_that_a_program_adds_up(url: str) -> None:
    async with connect(url) as client:
        content, finish, calls = "", None, dict[int, dict[str, str]]()
        async for chunk in await client.chat.completions.create(**REQUEST, stream=True):
            (choice,) = chunk.choices
            content += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for part in choice.delta.tool_calls or []:
                call = calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
                call["id"] += part.id or ""
                assert part.function is not None
                call["name"] += part.function.name or ""
                call["arguments"] += part.function.arguments or ""
    assert (content, finish) == ("Let me look.", "tool_calls")
    assert [(call["name"], json.loads(call["arguments"])) for call in calls.values()] == CALLS
    assert list(calls) == [0, 1]


async def test_its_streaming_helper(url: str) -> None:
    async with connect(url) as client:
        done = []
        async with client.chat.completions.stream(**REQUEST, stream_options={"include_usage": True}) as stream:
            async for event in stream:
                if event.type == "tool_calls.function.arguments.done":
                    done.append((event.index, event.name, json.loads(event.arguments)))
        completion = await stream.get_final_completion()
    check(completion)
    assert done == [(0, *CALLS[0]), (1, *CALLS[1])]
    assert completion.usage is not None


async def test_a_two_step_loop(url: str) -> None:
    async with connect(url) as client:
        first = (await client.chat.completions.create(**REQUEST)).choices[0].message
        messages: list[Any] = [*ASKED, first]
        for call in reversed(first.tool_calls or []):
            messages.append({"role": "tool", "tool_call_id": call.id, "content": "sun"})
        last = await client.chat.completions.create(**REQUEST | {"messages": messages})
    assert (last.choices[0].message.content, last.choices[0].finish_reason) == ("Sun and rain.", "stop")
    assert last.choices[0].message.tool_calls is None


def use_sync(url: str) -> None:
    """The same paths with the blocking client."""
    with openai.OpenAI(base_url=url, api_key="local", max_retries=0) as client:
        check(client.chat.completions.create(**REQUEST))
        with client.chat.completions.stream(**REQUEST) as stream:
            check(stream.get_final_completion())
        chunks = list(client.chat.completions.create(**REQUEST, stream=True))
        assert sum(len(chunk.choices[0].delta.tool_calls or []) for chunk in chunks) == 2
        raw = client.chat.completions.with_raw_response.create(**REQUEST)
        check(raw.parse())


async def test_the_blocking_client(url: str) -> None:
    await asyncio.to_thread(use_sync, url)
