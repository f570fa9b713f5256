"""The API is right when the openai client is happy."""

from typing import Any

import openai
import pytest

from fakes.engine import FakeEngine, RankLostError
from support.scripts import say

REPLY = "why not</think>hello the wörld"


def connect(gateway: Any, **settings: Any) -> openai.AsyncOpenAI:
    """Give a client of the gateway."""
    return openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key="local", max_retries=0, **settings)


async def test_it_streams_a_chat(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(script=say(REPLY)))
    async with connect(gateway) as client:
        stream = await client.chat.completions.create(
            model="tiny",
            messages=[{"role": "user", "content": "hello"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        content, reasoning, finish, usage = "", "", None, None
        async for chunk in stream:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                content += choice.delta.content or ""
                reasoning += getattr(choice.delta, "reasoning_content", None) or ""
                finish = choice.finish_reason or finish
    assert (content, reasoning, finish) == ("hello the wörld", "why not", "stop")
    assert usage is not None
    assert usage.completion_tokens_details is not None
    assert usage.completion_tokens_details.reasoning_tokens == 8


async def test_its_accumulating_stream_agrees_with_the_whole_reply(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(script=say(REPLY), tokens_per_step=2))
    async with connect(gateway) as client:
        request: dict[str, Any] = {"model": "tiny", "messages": [{"role": "user", "content": "a"}], "logprobs": True}
        whole = await client.chat.completions.create(**request)
        async with client.chat.completions.stream(**request) as stream:
            async for _ in stream:
                pass
            streamed = await stream.get_final_completion()
    assert streamed.choices[0].message.content == whole.choices[0].message.content == "hello the wörld"
    assert streamed.choices[0].finish_reason == whole.choices[0].finish_reason
    assert streamed.choices[0].logprobs is not None
    assert whole.choices[0].logprobs is not None
    assert streamed.choices[0].logprobs.content == whole.choices[0].logprobs.content


async def test_it_completes_lists_models_and_sees_the_request_id(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(script=say("hello")))
    async with connect(gateway, default_headers={"X-Request-Id": "my-id.1"}) as client:
        completion = await client.completions.create(model="tiny", prompt=["a", "b"], logprobs=1, echo=True)
        assert [choice.text for choice in completion.choices] == ["ahello", "bhello"]
        assert completion._request_id == "my-id.1"
        models = await client.models.list()
        assert [model.id for model in models.data] == ["tiny"]
        assert (await client.models.retrieve("tiny")).id == "tiny"


async def test_it_raises_its_own_errors(start_gateway: Any) -> None:
    gateway = await start_gateway()
    messages: Any = [{"role": "user", "content": "a"}]
    async with connect(gateway) as client:
        with pytest.raises(openai.BadRequestError, match="maximum context length is 512 tokens") as caught:
            await client.chat.completions.create(model="tiny", messages=messages, max_tokens=600)
        assert caught.value.code == "context_length_exceeded"
        with pytest.raises(openai.NotFoundError) as missing:
            await client.chat.completions.create(model="other", messages=messages)
        assert missing.value.code == "model_not_found"


async def test_it_raises_an_error_in_the_middle_of_a_stream(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(failure=RankLostError("rank 1 is lost"), fail_after=3))
    async with connect(gateway) as client:
        stream = await client.chat.completions.create(
            model="tiny", messages=[{"role": "user", "content": "a"}], stream=True
        )
        with pytest.raises(openai.APIError, match="not available"):
            async for _ in stream:
                pass
