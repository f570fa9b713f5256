"""The openai client's Responses API: whole, streamed, its streaming helper, a tool loop, what is stored, errors."""

import asyncio
import json
from typing import Any

import openai
import pytest
from openai.types.responses import Response

from fakes.engine import RankLostError
from support.calling_twice import CITY, answer, build_engine, prompt_of
from support.scripts import USER, encode

TOOLS: Any = [
    {
        "type": "function",
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "strict": False,
    }
]
ASKED = "Weather in Oslo and Tromsø?"
REQUEST: dict[str, Any] = {"model": "tiny", "input": ASKED, "tools": TOOLS, "instructions": "Be kind"}
FOUND = [
    ("reasoning", "Two cities."),
    ("message", "Let me look.And then?"),
    ("function_call", {"city": "Oslo"}),
    ("function_call", {"city": "Tromsø"}),
]


@pytest.fixture(params=[1, 2, 1000], ids=lambda count: f"{count} tokens a step")
async def url(request: pytest.FixtureRequest, start_gateway: Any) -> str:
    """Address of a gateway whose engine calls tools."""
    url: str = (await start_gateway(build_engine(script=answer, tokens_per_step=request.param))).url
    return url


def connect(url: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="local", max_retries=0)


def check(response: Response) -> None:
    """Check that a response is the one that calls twice."""
    found: list[tuple[str, Any]] = []
    for item in response.output:
        if item.type == "reasoning":
            found.append((item.type, "".join(part.text for part in item.content or [])))
        elif item.type == "message":
            found.append((item.type, "".join(part.text for part in item.content if part.type == "output_text")))
        elif item.type == "function_call":
            assert (item.name, item.status) == ("get_weather", "completed")
            found.append((item.type, json.loads(item.arguments)))
    assert found == FOUND
    assert (response.status, response.error, response.incomplete_details) == ("completed", None, None)
    assert response.output_text == FOUND[1][1]
    assert (response.model, response.instructions, response.tool_choice) == ("tiny", "Be kind", "auto")


async def test_a_whole_response_and_its_streaming_helper(url: str) -> None:
    async with connect(url) as client:
        whole = await client.responses.create(**REQUEST)
        check(whole)
        async with client.responses.stream(**REQUEST) as stream:
            async for _ in stream:
                pass
            streamed = await stream.get_final_response()
    check(streamed)
    assert whole.usage is not None
    assert streamed.usage == whole.usage
    assert whole.usage.output_tokens > whole.usage.output_tokens_details.reasoning_tokens > 0


async def test_the_events_of_a_stream(url: str) -> None:
    async with connect(url) as client:
        events: list[Any] = [event async for event in await client.responses.create(**REQUEST, stream=True)]
    kinds = [event.type for event in events]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert (kinds[:2], kinds[-1]) == (["response.created", "response.in_progress"], "response.completed")
    check(events[-1].response)
    for name in ("output_item.added", "output_item.done"):
        assert [event.output_index for event in events if event.type == f"response.{name}"] == [0, 1, 2, 3]
    for name in ("content_part.added", "content_part.done"):
        assert [event.output_index for event in events if event.type == f"response.{name}"] == [0, 1]
    done = [event.item for event in events if event.type == "response.output_item.done"]
    assert done == events[-1].response.output
    texts: dict[str, str] = {}
    for event in events:
        if event.type.endswith(".delta"):
            texts[event.item_id] = texts.get(event.item_id, "") + event.delta
        elif event.type in ("response.reasoning_text.done", "response.output_text.done"):
            assert event.text == texts[event.item_id]
        elif event.type == "response.function_call_arguments.done":
            assert event.arguments == texts[event.item_id]
    assert list(texts) == [item.id for item in done]


async def test_the_names_of_events_are_their_types(start_gateway: Any) -> None:
    gateway = await start_gateway(build_engine(script=answer))
    response = await gateway.post("/v1/responses", {**REQUEST, "stream": True})
    blocks = [block for block in response.text.split("\n\n") if block and not block.startswith(":")]
    for block in blocks:
        name, data = block.split("\n")
        assert name == f"event: {json.loads(data.removeprefix('data: '))['type']}"


async def test_a_two_step_loop_with_the_items_sent_back(url: str) -> None:
    async with connect(url) as client:
        first = await client.responses.create(**REQUEST)
        items: list[Any] = [{"role": "user", "content": ASKED}, *first.output]
        for item in first.output:
            if item.type == "function_call":
                items.append({"type": "function_call_output", "call_id": item.call_id, "output": "sun"})
        last = await client.responses.create(**REQUEST | {"input": items})
    assert [item.type for item in last.output] == ["reasoning", "message"]
    assert last.output_text == "Sun and rain."


@pytest.mark.parametrize("stream", [False, True])
async def test_a_response_goes_on_from_a_stored_one(start_gateway: Any, stream: bool) -> None:
    gateway = await start_gateway(build_engine(script=answer))
    async with connect(gateway.url) as client:
        if stream:
            async with client.responses.stream(**REQUEST) as running:
                first: Any = await running.get_final_response()
        else:
            first = await client.responses.create(**REQUEST)
        results: Any = [
            {"type": "function_call_output", "call_id": item.call_id, "output": "sun"}
            for item in first.output
            if item.type == "function_call"
        ]
        second = await client.responses.create(
            model="tiny", tools=TOOLS, input=results, previous_response_id=first.id, store=True
        )
        assert second.previous_response_id == first.id
        await client.responses.create(model="tiny", input="Thanks", previous_response_id=second.id)
    history = (
        f"<|user|>{ASKED}<|assistant|><think>Two cities.</think>Let me look.And then?"
        f"{CITY.format('Oslo')}{CITY.format('Tromsø')}"
        "<|observation|><tool_response>sun</tool_response><tool_response>sun</tool_response>"
    )
    prompts = [prompt_of(request) for request in gateway.engine.requests]
    assert prompts[1].endswith(f"{history}<|assistant|><think>")
    assert prompts[2].endswith(
        f"{history}<|assistant|><think>I know now.</think>Sun and rain.<|user|>Thanks<|assistant|><think>"
    )
    assert ["Be kind" in prompt for prompt in prompts] == [True, False, False]


async def test_stored_responses_are_given_and_forgotten(start_gateway: Any) -> None:
    gateway = await start_gateway(build_engine(script=answer))
    async with connect(gateway.url) as client:
        kept = await client.responses.create(**REQUEST, metadata={"a": "b"})
        found = await client.responses.retrieve(kept.id)
        assert found == kept
        assert found.metadata == {"a": "b"}
        await client.responses.delete(kept.id)
        other = await client.responses.create(**REQUEST, store=False)
        for gone in (kept.id, other.id):
            with pytest.raises(openai.NotFoundError):
                await client.responses.retrieve(gone)
            with pytest.raises(openai.NotFoundError):
                await client.responses.delete(gone)
            with pytest.raises(openai.BadRequestError) as refused:
                await client.responses.create(model="tiny", input="x", previous_response_id=gone)
            assert refused.value.param == "previous_response_id"


async def test_a_streamed_response_is_stored_before_its_last_event(start_gateway: Any) -> None:
    gateway = await start_gateway(build_engine(script=answer))
    async with connect(gateway.url) as client:
        async for event in await client.responses.create(**REQUEST, stream=True):
            if event.type == "response.completed":
                assert await client.responses.retrieve(event.response.id) == event.response


async def test_another_key_does_not_see_it(start_gateway: Any, tmp_path: Any) -> None:
    keys = tmp_path / "keys"
    keys.write_text("one: first\ntwo: second\n")
    keys.chmod(0o600)
    gateway = await start_gateway(build_engine(script=answer), keys_file=keys)
    async with connect(gateway.url) as client:
        first, second = client.with_options(api_key="first"), client.with_options(api_key="second")
        kept = await first.responses.create(**REQUEST)
        with pytest.raises(openai.NotFoundError):
            await second.responses.retrieve(kept.id)
        assert await first.responses.retrieve(kept.id) == kept


@pytest.mark.parametrize("stream", [False, True])
async def test_a_reply_that_a_limit_cuts(start_gateway: Any, stream: bool) -> None:
    gateway = await start_gateway(build_engine(script=lambda _request: [*encode("why</think>one two"), USER]))
    async with connect(gateway.url) as client:
        for limit, statuses in ((2, ["incomplete"]), (6, ["completed", "incomplete"])):
            request: dict[str, Any] = {"model": "tiny", "input": "x", "max_output_tokens": limit}
            if stream:
                events: list[Any] = [event async for event in await client.responses.create(**request, stream=True)]
                assert events[-1].type == "response.incomplete"
                response: Any = events[-1].response
            else:
                response = await client.responses.create(**request)
            assert response.status == "incomplete"
            assert response.incomplete_details.reason == "max_output_tokens"
            assert [item.status for item in response.output] == statuses
            assert response.usage.output_tokens == limit == response.max_output_tokens


async def test_a_failure_while_the_reply_runs(start_gateway: Any) -> None:
    engine = build_engine(script=answer, failure=RankLostError("gone"), fail_after=12)
    gateway = await start_gateway(engine)
    async with connect(gateway.url) as client:
        with pytest.raises(openai.InternalServerError):
            await client.responses.create(**REQUEST)
        events: list[Any] = [event async for event in await client.responses.create(**REQUEST, stream=True)]
        last = events[-1]
        assert (last.type, last.response.status) == ("response.failed", "failed")
        assert last.response.error.message == "The engine is not available."
        assert last.sequence_number == len(events) - 1
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(last.response.id)


def use_sync(url: str) -> None:
    """The same paths with the blocking client."""
    with openai.OpenAI(base_url=f"{url}/v1", api_key="local", max_retries=0) as client:
        check(client.responses.create(**REQUEST))
        with client.responses.stream(**REQUEST) as stream:
            check(stream.get_final_response())


async def test_the_blocking_client(url: str) -> None:
    await asyncio.to_thread(use_sync, url)
