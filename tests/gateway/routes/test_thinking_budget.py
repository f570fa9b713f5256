"""Thinking budgets through HTTP: every name of the field, both modes, all APIs, and failures between its calls."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fakes.engine import FakeEngine, RankLostError
from support.constrained import build_engine, saying
from support.scripts import USER, encode
from support.tiny_tokenizer import build_tokenizer
from support.waiting import eventually
from twinspark.engine.v1 import engine_pb2 as pb

CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}
CLOSING = encode("\n</think>\n\n")
THOUGHT = "hello or the </think>first"
CLOSE = 284


def thinks(thought: str = THOUGHT, answer: str = "second") -> Callable[[pb.GenerateRequest], Sequence[int]]:
    """Say the thought, and the answer to a request that goes on behind a closed reasoning."""
    return lambda request: [*encode(answer if request.num_prior_output_tokens else thought), USER]


async def stream(gateway: Any, body: dict[str, Any], index: int = 0) -> dict[str, Any]:
    """Add up a streamed choice; its deltas are those of one reply."""
    events = await gateway.events(CHAT, body | {"stream_options": {"include_usage": True}})
    assert events.pop() == "[DONE]"
    chunks = [json.loads(event) for event in events]
    usage = chunks.pop()["usage"]
    mine = [chunk["choices"][0] for chunk in chunks if chunk["choices"][0]["index"] == index]
    assert [choice["delta"].get("role") for choice in mine].count("assistant") == 1
    assert [choice["finish_reason"] for choice in mine[:-1]] == [None] * (len(mine) - 1)
    return {
        "reasoning": "".join(choice["delta"].get("reasoning_content", "") for choice in mine),
        "content": "".join(choice["delta"].get("content", "") for choice in mine),
        "token_ids": [i for choice in mine for i in choice.get("token_ids", [])],
        "logprobs": [entry for choice in mine for entry in (choice["logprobs"] or {"content": []})["content"]],
        "finish": mine[-1]["finish_reason"],
        "usage": usage,
    }


async def whole(gateway: Any, body: dict[str, Any], index: int = 0) -> dict[str, Any]:
    """Give a whole choice in the same form."""
    response = await gateway.post(CHAT, body)
    assert response.status_code == 200, response.text
    reply = response.json()
    choice = reply["choices"][index]
    return {
        "reasoning": choice["message"].get("reasoning_content", ""),
        "content": choice["message"]["content"],
        "token_ids": choice["token_ids"],
        "logprobs": (choice["logprobs"] or {"content": []})["content"],
        "finish": choice["finish_reason"],
        "usage": reply["usage"],
    }


@pytest.mark.parametrize("tokens_per_step", [1, 3])
async def test_every_budget_is_served_whole_and_streamed_alike(start_gateway: Any, tokens_per_step: int) -> None:
    gateway = await start_gateway(FakeEngine(script=thinks(), tokens_per_step=tokens_per_step))
    body = HELLO | {"return_token_ids": True, "max_tokens": 60, "logprobs": True, "top_logprobs": 1}
    free = await whole(gateway, body)
    reply = [*encode(THOUGHT), USER]
    num_reasoning = reply.index(CLOSE) + 1
    for budget in range(1, len(reply) + 2):
        outcome = await whole(gateway, body | {"thinking_budget": budget})
        assert await stream(gateway, body | {"thinking_budget": budget}) == outcome
        if budget >= num_reasoning:
            assert outcome == free
            continue
        assert outcome["token_ids"] == [*reply[: budget - 1], *CLOSING, *encode("second"), USER]
        assert (outcome["content"], outcome["finish"]) == ("second", "stop")
        assert "".join(entry["token"] for entry in outcome["logprobs"]) == "second"
        usage = outcome["usage"]
        assert usage["prompt_tokens"] == free["usage"]["prompt_tokens"]
        assert usage["completion_tokens"] == len(outcome["token_ids"])
        assert usage["completion_tokens_details"]["reasoning_tokens"] == budget - 1 + CLOSING.index(CLOSE) + 1
        second = gateway.engine.requests[-1]
        assert second.num_prior_output_tokens == budget - 1 + len(CLOSING)
        assert second.limits.max_tokens == 60 - second.num_prior_output_tokens


@pytest.mark.parametrize("params", [{"temperature": 0}, {"seed": 11}, {"seed": 3, "n": 2, "min_tokens": 20}])
async def test_the_answer_is_what_a_fresh_request_draws_after_the_same_tokens(
    gateway: Any, params: dict[str, Any]
) -> None:
    body = HELLO | {"return_token_ids": True, "max_tokens": 40, "ignore_eos": True} | params
    prompt = (await gateway.post("/tokenize", HELLO)).json()["tokens"]
    free = (await gateway.post(CHAT, body)).json()
    for budget in (1, 2, 9, 30, 37, 39):
        closed = (await gateway.post(CHAT, body | {"thinking_budget": budget})).json()
        for index, choice in enumerate(closed["choices"]):
            prior = [*free["choices"][index]["token_ids"][: budget - 1], *CLOSING]
            assert CLOSE not in prior[: budget - 1]
            assert choice["token_ids"][: len(prior)] == prior[:40]
            assert (len(choice["token_ids"]), choice["finish_reason"]) == (40, "length")
            if len(prior) >= 40:
                continue
            fresh = {"prompt": [*prompt, *prior], "max_tokens": 40 - len(prior), "ignore_eos": True}
            fresh |= {"return_token_ids": True, "temperature": params.get("temperature", 1)}
            fresh |= {"seed": params["seed"] + index} if "seed" in params else {}
            rest = (await gateway.post("/v1/completions", fresh)).json()["choices"][0]
            assert choice["token_ids"][len(prior) :] == rest["token_ids"]


async def test_without_a_seed_a_request_still_repeats_itself(gateway: Any) -> None:
    body = HELLO | {"return_token_ids": True, "max_tokens": 30, "ignore_eos": True}
    free = await whole(gateway, body)
    closed = await whole(gateway, body | {"thinking_budget": 6})
    assert closed == await whole(gateway, body | {"thinking_budget": 6})
    assert closed["token_ids"][:5] == free["token_ids"][:5]
    assert not any(request.sampling.HasField("seed") for request in gateway.engine.requests)


async def test_each_name_of_the_field_counts_and_the_first_that_is_given_wins(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(script=thinks()), thinking_budget=2)
    fields: list[tuple[dict[str, Any], int]] = [
        ({}, 2),
        ({"thinking_budget": 0}, 2),
        ({"thinking_budget": None, "reasoning_budget": "4"}, 4),
        ({"reasoning_budget": 3}, 3),
        ({"thinking_token_budget": 3.0}, 3),
        ({"thinking": {"type": "enabled", "budget_tokens": 3}}, 3),
        ({"thinking": {"type": "enabled", "budget_tokens": 0}}, 2),
        ({"thinking_budget": 4, "reasoning_budget": 3, "thinking": {"type": "enabled", "budget_tokens": 1}}, 4),
    ]
    for given, budget in fields:
        outcome = await whole(gateway, HELLO | {"return_token_ids": True} | given)
        assert outcome["token_ids"][: budget - 1 + len(CLOSING)] == [*encode(THOUGHT)[: budget - 1], *CLOSING], given
    outcome = await whole(gateway, HELLO | {"return_token_ids": True, "reasoning_effort": "none", "thinking_budget": 1})
    assert outcome["token_ids"] == [*encode(THOUGHT), USER]


async def test_a_limit_at_the_forced_close_ends_the_reply_by_length(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(script=thinks()))
    for extra in range(len(CLOSING) + 1):
        body = HELLO | {"return_token_ids": True, "thinking_budget": 3, "max_tokens": 3 + extra}
        outcome = await whole(gateway, body)
        assert outcome == await stream(gateway, body)
        # Without room for an answer the budget has nothing to make room for.
        closed = [*encode(THOUGHT)[:2], *CLOSING, *encode("s")]
        assert outcome["token_ids"] == (closed[: 3 + extra] if extra else encode(THOUGHT)[:3])
        assert (outcome["finish"], outcome["usage"]["completion_tokens"]) == ("length", 3 + extra)


async def test_stop_strings_and_calls_after_the_close_end_the_reply_as_always(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(script=thinks("hello " * 20, "x<tool_call>f</tool_call>")))
    body = HELLO | {"return_token_ids": True, "thinking_budget": 3}
    tools = [{"type": "function", "function": {"name": "f"}}]
    for stop, finish, content in (("x", "stop", ""), ("hello", "tool_calls", "x")):
        request = body | {"tools": tools, "stop": stop}
        reply = (await gateway.post(CHAT, request)).json()["choices"][0]
        assert (reply["finish_reason"], reply["message"]["content"]) == (finish, content)
        assert (await stream(gateway, request))["finish"] == finish


@pytest.mark.parametrize("streams", [False, True])
async def test_a_format_and_a_required_call_hold_from_the_forced_close_on(
    start_gateway: Any, grammar_address: str, streams: bool
) -> None:
    engine = build_engine(grammar_address)
    gateway = await start_gateway(engine, grammar=grammar_address)
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    body = HELLO | {"max_tokens": 200, "thinking_budget": 3, "return_token_ids": True}
    for given, wanted, content, finish in (
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}},
            '{"city": "Oslo"}',
            None,
            "stop",
        ),
        ({"guided_choice": ["yes", "no"]}, "no", None, "stop"),
        ({"tools": tools, "tool_choice": "required"}, "<tool_call>f</tool_call>", "", "tool_calls"),
    ):
        first, second = saying("hello the hello the"), saying(wanted)
        engine.wanted = lambda request, a=first, b=second: (b if request.num_prior_output_tokens else a)(request)
        engine.requests.clear()
        outcome = await (stream if streams else whole)(gateway, body | given)
        assert outcome["reasoning"] == build_tokenizer().decode(encode("hello the hello the")[:2]) + "\n"
        assert (outcome["content"] or "", outcome["finish"]) == (wanted if content is None else content, finish)
        assert [request.grammar.start for request in engine.requests] == [
            pb.GRAMMAR_START_AFTER_THINKING,
            pb.GRAMMAR_START_AT_ONCE,
        ]
        assert len({request.grammar.handle for request in engine.requests}) == 1


class GoesNoFurther(FakeEngine):
    """An engine that loses a rank before the second call."""

    def _check(self, request: pb.GenerateRequest) -> None:
        super()._check(request)
        if request.num_prior_output_tokens:
            raise RankLostError("a rank is lost")


async def test_an_engine_that_fails_between_the_calls_ends_the_request_with_its_error(start_gateway: Any) -> None:
    gateway = await start_gateway(GoesNoFurther(script=thinks()))
    body = HELLO | {"thinking_budget": 3}
    response = await gateway.post(CHAT, body)
    assert (response.status_code, response.json()["error"]["type"]) == (503, "server_error")
    events = await gateway.events(CHAT, body)
    assert events[-1] == "[DONE]"
    assert json.loads(events[-2])["error"] == response.json()["error"]
    await eventually(lambda: not gateway.engine.running, "the engine is idle")


@pytest.mark.parametrize("is_second", [False, True])
@pytest.mark.parametrize("streams", [False, True])
async def test_a_client_that_leaves_during_either_call_frees_its_slot(
    start_gateway: Any, is_second: bool, streams: bool
) -> None:
    engine = FakeEngine(script=thinks("hello " * 200, "hello " * 200), step_seconds=0.01)
    gateway = await start_gateway(engine)
    body = HELLO | {"thinking_budget": 2 if is_second else 300, "stream": streams, "max_tokens": 400}
    request = asyncio.create_task(gateway.post(CHAT, body))
    await eventually(lambda: len(engine.requests) == 1 + is_second and bool(engine.running), "the call runs")
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    await eventually(lambda: not engine.running, "the engine is idle")
    assert engine.counts["requests_cancelled_total"] == 1 + is_second


@dataclass
class Line:
    """A line of the request log."""

    thinking: bool
    effort: str | None
    budget: int | None
    closed: int | None
    finish: str


async def test_the_log_tells_effort_budget_and_close(start_gateway: Any, tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    gateway = await start_gateway(FakeEngine(script=thinks()), request_log_file=path)
    for given in (
        {"reasoning_effort": "medium", "thinking_budget": 3, "n": 2},
        {"thinking_budget": 90},
        {"reasoning_effort": "none"},
    ):
        assert (await gateway.post(CHAT, HELLO | given)).status_code == 200
    await eventually(lambda: len(path.read_text().splitlines()) == 3, "three requests are logged")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [
        Line(
            line["thinking"], line.get("effort"), line.get("thinking_budget"), line.get("budget_closed"), line["finish"]
        )
        for line in lines
    ] == [
        Line(True, "high", 3, 2, "stop,stop"),
        Line(True, None, 90, 0, "stop"),
        Line(False, None, None, None, "stop"),
    ]


async def test_the_other_apis_close_a_reasoning_too(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(script=thinks()))
    messages = HELLO | {"max_tokens": 60, "thinking": {"type": "enabled", "budget_tokens": 3}}
    reply = (await gateway.post("/v1/messages", messages)).json()
    kept = "hello \n"
    assert [(block["type"], block.get("thinking", block.get("text"))) for block in reply["content"]] == [
        ("thinking", kept),
        ("text", "second"),
    ]
    response = await gateway.client.post("/v1/messages", json=messages | {"stream": True})
    assert response.text.count("event: message_start\n") == 1
    counted = (await gateway.post("/v1/messages/count_tokens", messages)).json()["input_tokens"]
    assert reply["usage"]["input_tokens"] == counted
    assert reply["usage"]["output_tokens"] == 2 + len(CLOSING) + len(encode("second")) + 1
    answer = (await gateway.post("/v1/responses", {"input": "hello", "thinking_budget": 3})).json()
    assert answer["output"][0]["content"][0]["text"] == kept
    assert answer["output"][1]["content"][0]["text"] == "second"
