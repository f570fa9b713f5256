"""The anthropic client's ordinary paths: whole, streamed, its streaming helper, a tool loop, counting, errors."""

import asyncio
from typing import Any

import anthropic
import pytest

from fakes.engine import RankLostError
from support.calling_twice import CITY, answer, build_engine, prompt_of
from support.scripts import USER, encode

TOOLS: Any = [
    {
        "name": "get_weather",
        "description": "The weather in a city.",
        "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
]
ASKED: Any = [{"role": "user", "content": "Weather in Oslo and Tromsø?"}]
REQUEST: dict[str, Any] = {
    "model": "tiny",
    "max_tokens": 500,
    "messages": ASKED,
    "tools": TOOLS,
    "thinking": {"type": "adaptive"},
}
BLOCKS = [
    ("thinking", "Two cities."),
    ("text", "Let me look.And then?"),
    ("tool_use", {"city": "Oslo"}),
    ("tool_use", {"city": "Tromsø"}),
]


@pytest.fixture(params=[1, 2, 1000], ids=lambda count: f"{count} tokens a step")
async def url(request: pytest.FixtureRequest, start_gateway: Any) -> str:
    """Address of a gateway whose engine calls tools."""
    url: str = (await start_gateway(build_engine(script=answer, tokens_per_step=request.param))).url
    return url


def connect(url: str) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(base_url=url, api_key="local", max_retries=0)


def check(message: anthropic.types.Message) -> None:
    """Check that a reply is the one that calls twice."""
    found: list[tuple[str, Any]] = []
    for block in message.content:
        if block.type == "thinking":
            found.append((block.type, block.thinking))
        elif block.type == "text":
            found.append((block.type, block.text))
        elif block.type == "tool_use":
            assert block.name == "get_weather"
            found.append((block.type, block.input))
    assert found == BLOCKS
    assert (message.stop_reason, message.stop_sequence) == ("tool_use", None)
    assert (message.role, message.type, message.model) == ("assistant", "message", "tiny")


async def test_a_whole_reply_and_its_streaming_helper(url: str) -> None:
    async with connect(url) as client:
        whole = await client.messages.create(**REQUEST)
        check(whole)
        async with client.messages.stream(**REQUEST) as stream:
            texts = [text async for text in stream.text_stream]
            streamed = await stream.get_final_message()
    check(streamed)
    assert "".join(texts) == BLOCKS[1][1]
    assert streamed.usage.input_tokens == whole.usage.input_tokens > 0
    assert streamed.usage.output_tokens == whole.usage.output_tokens > 0


async def test_the_events_of_a_stream(url: str) -> None:
    async with connect(url) as client:
        events = [event async for event in await client.messages.create(**REQUEST, stream=True)]
    kinds = [event.type for event in events]
    assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])
    indices = [event.index for event in events if event.type == "content_block_start"]
    assert indices == [event.index for event in events if event.type == "content_block_stop"] == [0, 1, 2, 3]
    opened = -1
    for event in events:
        if event.type == "content_block_start":
            opened = event.index
        elif event.type in ("content_block_delta", "content_block_stop"):
            assert event.index == opened
    deltas = [event.delta.type for event in events if event.type == "content_block_delta"]
    assert list(dict.fromkeys(deltas)) == ["thinking_delta", "signature_delta", "text_delta", "input_json_delta"]


async def test_a_two_step_loop(url: str) -> None:
    async with connect(url) as client:
        first = await client.messages.create(**REQUEST)
        results: list[Any] = [
            {"type": "tool_result", "tool_use_id": block.id, "content": [{"type": "text", "text": "sun"}]}
            for block in first.content
            if block.type == "tool_use"
        ]
        messages: list[Any] = [
            *ASKED,
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": [*results, {"type": "text", "text": "Short, please."}]},
        ]
        last = await client.messages.create(**REQUEST | {"messages": messages})
    assert [block.type for block in last.content] == ["thinking", "text"]
    assert last.stop_reason == "end_turn"


async def test_what_the_engine_is_asked_in_a_loop(start_gateway: Any) -> None:
    gateway = await start_gateway(build_engine(script=answer))
    call = {"type": "tool_use", "id": "a", "name": "get_weather", "input": {"city": "Oslo"}}
    thought = {"type": "thinking", "thinking": "Hm.", "signature": ""}
    messages: Any = [
        *ASKED,
        {"role": "assistant", "content": [thought, {"type": "text", "text": "Well."}, call]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "sun"},
                *({"type": "text", "text": text} for text in ("So", "?")),
            ],
        },
    ]
    async with connect(gateway.url) as client:
        await client.messages.create(
            **REQUEST | {"messages": messages, "system": [{"type": "text", "text": "Be kind"}]}
        )
    (request,) = gateway.engine.requests
    assert prompt_of(request).endswith(
        f"<|system|>Be kind<|user|>{ASKED[0]['content']}<|assistant|><think>Hm.</think>Well.{CITY.format('Oslo')}"
        "<|observation|><tool_response>sun</tool_response><|user|>So?<|assistant|><think>"
    )


async def test_thinking_is_off_unless_it_is_asked_for(start_gateway: Any) -> None:
    gateway = await start_gateway(build_engine(script=lambda _request: [*encode("Hello."), USER]))
    async with connect(gateway.url) as client:
        plain = await client.messages.create(model="tiny", max_tokens=9, messages=ASKED)
        await client.messages.create(model="tiny", max_tokens=9, messages=ASKED, thinking={"type": "disabled"})
        await client.messages.create(
            model="tiny",
            max_tokens=9,
            messages=ASKED,
            thinking={"type": "adaptive"},
            output_config={"effort": "low"},
        )
    assert [block.type for block in plain.content] == ["text"]
    prompts = [prompt_of(request) for request in gateway.engine.requests]
    assert [prompt.endswith("<think></think>") for prompt in prompts] == [True, True, False]
    assert [("Reasoning Effort: Low" in prompt) for prompt in prompts] == [False, False, True]


@pytest.mark.parametrize("stream", [False, True])
async def test_how_a_reply_ends(start_gateway: Any, stream: bool) -> None:
    gateway = await start_gateway(build_engine(script=lambda _request: [*encode("one two three"), USER]))
    request: dict[str, Any] = {"model": "tiny", "messages": ASKED}

    async def ask(**fields: Any) -> anthropic.types.Message:
        async with connect(gateway.url) as client:
            if not stream:
                whole: anthropic.types.Message = await client.messages.create(**request, **fields)
                return whole
            async with client.messages.stream(**request, **fields) as running:
                return await running.get_final_message()

    ended = await ask(max_tokens=100)
    assert (ended.stop_reason, ended.stop_sequence) == ("end_turn", None)
    cut = await ask(max_tokens=3)
    assert (cut.stop_reason, cut.usage.output_tokens) == ("max_tokens", 3)
    stopped = await ask(max_tokens=100, stop_sequences=["two", "x"])
    assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", "two")
    assert stopped.content[0].type == "text"
    assert stopped.content[0].text == "one "


async def test_a_reply_goes_on_with_an_assistant_message_at_the_end(start_gateway: Any) -> None:
    gateway = await start_gateway(build_engine(script=lambda _request: [*encode(" world"), USER]))
    messages: Any = [*ASKED, {"role": "assistant", "content": "hello"}]
    async with connect(gateway.url) as client:
        await client.messages.create(model="tiny", max_tokens=9, messages=messages)
    assert prompt_of(gateway.engine.requests[0]).endswith("<|assistant|><think></think>hello")


async def test_counted_tokens_are_those_of_the_usage(start_gateway: Any) -> None:
    engine = build_engine(script=answer, num_cached_tokens=5)
    gateway = await start_gateway(engine)
    fields = {key: value for key, value in REQUEST.items() if key != "max_tokens"}
    async with connect(gateway.url) as client:
        counted = await client.messages.count_tokens(**fields)
        message = await client.messages.create(**REQUEST)
        bare = await client.messages.count_tokens(model="tiny", messages=ASKED)
    assert message.usage.cache_read_input_tokens == 5
    assert counted.input_tokens == message.usage.input_tokens + 5 == len(engine.requests[0].prompt_token_ids)
    assert bare.input_tokens < counted.input_tokens


async def test_refusals_are_its_errors(start_gateway: Any) -> None:
    gateway = await start_gateway(build_engine(script=answer))
    async with connect(gateway.url) as client:
        with pytest.raises(anthropic.NotFoundError) as unknown:
            await client.messages.create(**REQUEST | {"model": "other"})
        with pytest.raises(anthropic.BadRequestError, match="maximum context length is 8192 tokens"):
            await client.messages.create(**REQUEST | {"max_tokens": 8192})
        with pytest.raises(anthropic.BadRequestError, match=r"'stop_sequences' must be"):
            await client.messages.create(**REQUEST | {"stop_sequences": [1]})
    assert unknown.value.body == {
        "type": "error",
        "error": {"type": "not_found_error", "message": "The model 'other' does not exist."},
    }


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failure_while_the_reply_runs(start_gateway: Any, stream: bool) -> None:
    engine = build_engine(script=answer, failure=RankLostError("gone"), fail_after=12)
    gateway = await start_gateway(engine)
    async with connect(gateway.url) as client:
        with pytest.raises(anthropic.APIStatusError) as failure:
            reply: Any = await client.messages.create(**REQUEST, stream=stream)
            async for _ in reply:
                pass
    assert failure.value.body == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "The engine is not available."},
    }


async def test_a_missing_key_is_told_in_its_shape(start_gateway: Any, tmp_path: Any) -> None:
    keys = tmp_path / "keys"
    keys.write_text("one: right\n")
    keys.chmod(0o600)
    gateway = await start_gateway(build_engine(script=answer), keys_file=keys)
    async with connect(gateway.url) as client:
        with pytest.raises(anthropic.AuthenticationError) as refused:
            await client.messages.create(**REQUEST)
        check(await client.with_options(api_key="right").messages.create(**REQUEST))
    assert isinstance(refused.value.body, dict)
    assert refused.value.body["error"]["type"] == "authentication_error"


def use_sync(url: str) -> None:
    """The same paths with the blocking client."""
    with anthropic.Anthropic(base_url=url, api_key="local", max_retries=0) as client:
        check(client.messages.create(**REQUEST))
        with client.messages.stream(**REQUEST) as stream:
            check(stream.get_final_message())


async def test_the_blocking_client(url: str) -> None:
    await asyncio.to_thread(use_sync, url)
