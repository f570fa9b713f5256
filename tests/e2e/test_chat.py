"""The real stack through the openai client: streams, repetition, company, disconnects."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionChunk

from support.launched import Launched
from support.running_chat import get
from support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

Reply = tuple[str, str | None]


def messages(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def text_of(message: Any) -> str:
    """Reasoning and answer: a random model does not end its thinking where a trained one would."""
    return f"{getattr(message, 'reasoning_content', None) or ''}|{message.content or ''}"


def joined(chunks: Iterable[ChatCompletionChunk]) -> Reply:
    reasoning, answer, finish = "", "", None
    for chunk in chunks:
        for choice in chunk.choices:
            reasoning += getattr(choice.delta, "reasoning_content", None) or ""
            answer += choice.delta.content or ""
            finish = choice.finish_reason or finish
    return f"{reasoning}|{answer}", finish


def ask(client: openai.OpenAI, model: str, number: int, *, stream: bool = False) -> Reply:
    """One of several different requests; every third is greedy."""
    extra: dict[str, Any] = {"temperature": 0} if number % 3 == 0 else {"temperature": 0.8, "top_p": 0.9}
    asked = messages(f"Question {number}. " + "word " * (number * 17))
    if stream:
        return joined(client.chat.completions.create(model=model, messages=asked, max_tokens=12, stream=True, **extra))
    reply = client.chat.completions.create(model=model, messages=asked, max_tokens=12, **extra)
    return text_of(reply.choices[0].message), reply.choices[0].finish_reason


def test_the_openai_client_streams_a_chat(client: openai.OpenAI, model: str) -> None:
    chunks = list(
        client.chat.completions.create(
            model=model,
            messages=messages("Hello"),
            max_tokens=16,
            stream=True,
            stream_options={"include_usage": True},
            extra_body={"ignore_eos": True},
        )
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    text, finish = joined(chunks)
    assert len(text) > 10
    assert finish == "length"
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.completion_tokens == 16
    assert len(chunks) > 10


def test_a_repeated_request_and_its_stream_answer_the_same(client: openai.OpenAI, model: str) -> None:
    for number in (1, 3):
        first = ask(client, model, number)
        assert ask(client, model, number) == first
        assert ask(client, model, number, stream=True) == first


def test_requests_together_answer_as_alone(client: openai.OpenAI, model: str) -> None:
    numbers = list(range(10))
    alone = [ask(client, model, number) for number in numbers]
    assert len(set(alone)) > 5
    with ThreadPoolExecutor(len(numbers)) as pool:
        together = list(pool.map(lambda number: ask(client, model, number, stream=number % 2 == 0), numbers))
    assert together == alone


def test_another_seed_draws_other_tokens_and_the_same_seed_the_same(client: openai.OpenAI, model: str) -> None:
    def draw(seed: int) -> str:
        reply = client.chat.completions.create(
            model=model, messages=messages("Hello"), max_tokens=12, temperature=1.5, seed=seed
        )
        return text_of(reply.choices[0].message)

    assert draw(7) == draw(7)
    assert len({draw(seed) for seed in (-1, 0, 1, 2)}) == 4


def health(instance: Launched) -> dict[str, Any]:
    return get(instance.port, "/health")[1]


def test_a_disconnect_frees_the_slot(client: openai.OpenAI, model: str, instance: Launched) -> None:
    def open_stream() -> openai.Stream[ChatCompletionChunk]:
        stream = client.chat.completions.create(
            model=model,
            messages=messages("Tell a long story"),
            max_tokens=20_000,
            stream=True,
            extra_body={"ignore_eos": True},
        )
        next(stream)
        return stream

    num_slots = health(instance)["streams"]["max"]
    streams = [open_stream() for _ in range(num_slots + 1)]
    wait_until(lambda: health(instance)["streams"]["decoding"] == num_slots, lambda: str(health(instance)))
    for stream in streams:
        stream.close()
    wait_until(lambda: health(instance)["streams"]["decoding"] == 0, lambda: str(health(instance)))
    assert ask(client, model, 2) == ask(client, model, 2)
