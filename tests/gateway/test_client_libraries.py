"""litellm, langchain and the openai client's helpers run their ordinary paths."""

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from fakes.engine import FakeEngine, QueueFullError
from support.scripts import say
from support.waiting import eventually

# Each import takes seconds.
pytestmark = pytest.mark.slow
REPLY = "why not</think>hello the wörld"
HELLO: list[Any] = [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hello"}]


@pytest.fixture
def litellm(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The library, without its look at the network for a list of prices."""
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm as library

    yield library
    # Its clients belong to the event loop of one test.
    library.in_memory_llm_clients_cache.flush_cache()


def litellm_settings(gateway: Any) -> dict[str, Any]:
    """Name the gateway as an OpenAI-compatible server."""
    return {"model": "openai/tiny", "api_base": f"{gateway.url}/v1", "api_key": "local", "num_retries": 0}


async def test_litellm_reads_whole_and_streamed_replies_alike(start_gateway: Any, litellm: Any) -> None:
    gateway = await start_gateway(FakeEngine(script=say(REPLY)))
    request = {**litellm_settings(gateway), "messages": HELLO, "temperature": 0, "max_tokens": 60}
    whole = await litellm.acompletion(**request)
    message = whole.choices[0].message
    assert (message.content, message.reasoning_content) == ("hello the wörld", "why not")
    assert whole.choices[0].finish_reason == "stop"
    stream = await litellm.acompletion(**request, stream=True, stream_options={"include_usage": True})
    chunks = [chunk async for chunk in stream]
    built = litellm.stream_chunk_builder(chunks, messages=HELLO)
    assert built.choices[0].message.content == "hello the wörld"
    assert built.choices[0].message.reasoning_content == "why not"
    assert built.choices[0].finish_reason == "stop"
    assert built.usage.completion_tokens == whole.usage.completion_tokens > 0
    assert built.usage.prompt_tokens == whole.usage.prompt_tokens


async def test_litellm_completes_text(start_gateway: Any, litellm: Any) -> None:
    gateway = await start_gateway(FakeEngine(script=say("hello")))
    settings = {**litellm_settings(gateway), "model": "text-completion-openai/tiny"}
    reply = await litellm.atext_completion(**settings, prompt="a")
    assert reply.choices[0].text == "hello"


async def test_litellm_knows_a_context_overflow_and_a_busy_server(start_gateway: Any, litellm: Any) -> None:
    gateway = await start_gateway()
    with pytest.raises(litellm.ContextWindowExceededError):
        await litellm.acompletion(**litellm_settings(gateway), messages=HELLO, max_tokens=600)
    with pytest.raises(litellm.NotFoundError):
        await litellm.acompletion(**litellm_settings(gateway) | {"model": "openai/other"}, messages=HELLO)
    gateway.engine.failure = QueueFullError("full")
    with pytest.raises(litellm.ServiceUnavailableError):
        await litellm.acompletion(**litellm_settings(gateway), messages=HELLO)


def langchain(gateway: Any, **settings: Any) -> Any:
    """Give langchain's chat model of the gateway."""
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(base_url=f"{gateway.url}/v1", api_key="local", model="tiny", max_retries=0, **settings)


async def test_langchain_reads_whole_and_streamed_replies_alike(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(script=say(REPLY), tokens_per_step=2))
    chat = langchain(gateway, temperature=0, max_tokens=60, stream_usage=True)
    whole = await chat.ainvoke([("system", "be kind"), ("human", "hello")])
    assert whole.content == "hello the wörld"
    assert whole.response_metadata["finish_reason"] == "stop"
    total = None
    async for chunk in chat.astream([("system", "be kind"), ("human", "hello")]):
        total = chunk if total is None else total + chunk
    assert total is not None
    assert total.content == whole.content
    assert total.usage_metadata["total_tokens"] == whole.usage_metadata["total_tokens"] > 0
    assert total.response_metadata["finish_reason"] == "stop"


async def test_langchain_batches_and_goes_on_with_a_conversation(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(script=say(REPLY)))
    chat = langchain(gateway)
    replies = await chat.abatch(["one", "two", "three"])
    assert [reply.content for reply in replies] == ["hello the wörld"] * 3
    again = await chat.ainvoke([("human", "hello"), replies[0], ("human", "and now?")])
    assert again.content == "hello the wörld"
    with pytest.raises(openai.BadRequestError, match="maximum context length is 512 tokens"):
        await langchain(gateway, max_tokens=600).ainvoke("hello")


async def test_the_openai_client_streams_with_helpers_and_leaves_early(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(script=say(REPLY), step_seconds=0.01))
    async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="local", max_retries=0) as client:
        deltas = []
        async with client.chat.completions.stream(model="tiny", messages=HELLO) as stream:
            async for event in stream:
                if event.type == "content.delta":
                    deltas.append(event.delta)
            final = await stream.get_final_completion()
        assert "".join(deltas) == final.choices[0].message.content == "hello the wörld"
        raw = await client.chat.completions.with_raw_response.create(model="tiny", messages=HELLO)
        assert raw.headers["x-request-id"] == raw.request_id
        assert raw.parse().choices[0].message.content == "hello the wörld"
        async with client.chat.completions.with_streaming_response.create(
            model="tiny", messages=HELLO, stream=True, extra_body={"ignore_eos": True}
        ) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
    await eventually(lambda: not gateway.engine.running, "the slot is free")
    assert gateway.engine.counts["requests_cancelled_total"] == 1


async def test_the_openai_client_tries_again_where_that_can_help(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(failure=QueueFullError("full")))
    async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="local", max_retries=1) as client:
        with pytest.raises(openai.InternalServerError):
            await client.chat.completions.create(model="tiny", messages=HELLO)
        assert len(gateway.engine.requests) == 2
        with pytest.raises(openai.BadRequestError):
            await client.chat.completions.create(model="tiny", messages=[])
    assert len(gateway.engine.requests) == 2
