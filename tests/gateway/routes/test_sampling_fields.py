"""Penalties, logit_bias and min_tokens: what reaches the engine, and what a reply then is."""

import json
from typing import Any

import pytest

from fakes.engine import FakeEngine
from support.scripts import encode, say

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "user", "content": "hello"}]},
    COMPLETIONS: {"prompt": "hello"},
}
paths = pytest.mark.parametrize("path", [CHAT, COMPLETIONS])


@paths
@pytest.mark.parametrize("stream", [False, True])
async def test_all_fields_reach_the_engine_as_they_were_given(gateway: Any, path: str, stream: bool) -> None:
    given = {
        "presence_penalty": -1.25,
        "frequency_penalty": 2,
        "repetition_penalty": 1.1,
        "logit_bias": {"0": -100, "303": 0.1},
        "min_tokens": 3,
        "stop_token_ids": [7, 9],
        "max_tokens": 5,
    }
    response = await gateway.post(path, BODIES[path] | given | {"stream": stream})
    assert response.status_code == 200, response.text
    request = gateway.engine.requests[-1]
    assert (request.sampling.presence_penalty, request.sampling.frequency_penalty) == (-1.25, 2)
    assert request.sampling.repetition_penalty == 1.1
    assert dict(request.sampling.logit_bias) == {0: -100, 303: 0.1}
    assert (request.limits.min_tokens, list(request.limits.stop_token_ids)) == (3, [7, 9])


@paths
async def test_what_is_not_given_is_off(gateway: Any, path: str) -> None:
    await gateway.post(path, BODIES[path])
    request = gateway.engine.requests[-1]
    assert (request.sampling.presence_penalty, request.sampling.frequency_penalty) == (0, 0)
    assert request.sampling.repetition_penalty == 1
    assert not request.sampling.logit_bias
    assert request.limits.min_tokens == 0


async def test_a_repetition_penalty_of_the_checkpoint_is_the_default(start_gateway: Any, tmp_path: Any) -> None:
    (tmp_path / "generation_config.json").write_text('{"repetition_penalty": 1.3}')
    gateway = await start_gateway(model=tmp_path)
    for given, expected in (({}, 1.3), ({"repetition_penalty": None}, 1.3), ({"repetition_penalty": 1}, 1)):
        assert (await gateway.post(COMPLETIONS, {"prompt": [1], **given})).status_code == 200
        assert gateway.engine.requests[-1].sampling.repetition_penalty == expected
    models = (await gateway.client.get("/v1/models")).json()
    assert models["data"][0]["sampling_defaults"]["repetition_penalty"] == 1.3


async def test_a_forced_token_fills_the_reply_and_a_penalty_ends_its_reign(gateway: Any) -> None:
    token_id = encode("a")[0]
    body = BODIES[COMPLETIONS] | {"max_tokens": 6, "temperature": 0, "return_token_ids": True, "ignore_eos": True}
    forced = (await gateway.post(COMPLETIONS, body | {"logit_bias": {str(token_id): 100}})).json()["choices"][0]
    assert (forced["token_ids"], forced["text"]) == ([token_id] * 6, "aaaaaa")
    free = (await gateway.post(COMPLETIONS, body)).json()["choices"][0]["token_ids"]
    repelled = await gateway.post(COMPLETIONS, body | {"logit_bias": dict.fromkeys(map(str, free), -100)})
    assert not set(free) & set(repelled.json()["choices"][0]["token_ids"])


@paths
@pytest.mark.parametrize("stream", [False, True])
async def test_a_stop_string_ends_only_after_min_tokens(start_gateway: Any, path: str, stream: bool) -> None:
    text = "hello the hello the hello the hello"
    opened = "</think>" if path == CHAT else ""
    gateway = await start_gateway(FakeEngine(script=say(opened + text), tokens_per_step=2))
    for min_tokens in range(len(encode(opened + text))):
        # The first one whose last character comes with a later token.
        reached = next(
            (end for end in (9, 19, 29) if len(encode(opened + text[:end])) > min_tokens), len(text) + len("the")
        )
        shown = text[: reached - len("the")]
        body = BODIES[path] | {"stop": "the", "min_tokens": min_tokens, "max_tokens": 50, "logprobs": path == CHAT}
        if path == COMPLETIONS:
            body["logprobs"] = 0
        assert await content_of(gateway, path, body, stream) == shown, min_tokens


async def content_of(gateway: Any, path: str, body: dict[str, Any], stream: bool) -> str:
    """Give the visible text of a reply."""
    if not stream:
        choice = (await gateway.post(path, body)).json()["choices"][0]
        return str(choice["message"]["content"] if path == CHAT else choice["text"])
    events = await gateway.events(path, body)
    choices = [json.loads(event)["choices"][0] for event in events[:-1]]
    return "".join((c["delta"].get("content") or "") if path == CHAT else c["text"] for c in choices)


@paths
async def test_end_tokens_and_stop_ids_wait_for_min_tokens(gateway: Any, path: str) -> None:
    for end, given in ((277, {}), (65, {"stop_token_ids": [65], "ignore_eos": True})):
        bias = {"logit_bias": {str(end): 100}, "return_token_ids": True, "max_tokens": 20}
        for min_tokens in (0, 1, 6):
            reply = (await gateway.post(path, BODIES[path] | bias | given | {"min_tokens": min_tokens})).json()
            choice = reply["choices"][0]
            assert (choice["finish_reason"], reply["usage"]["completion_tokens"]) == ("stop", min_tokens + 1)
            assert choice["token_ids"].index(end) == min_tokens
            assert choice["stop_reason"] == (end if given else None)


async def test_min_tokens_that_leave_no_token_to_draw_are_refused_by_the_engine(start_gateway: Any) -> None:
    gateway = await start_gateway()
    body = BODIES[COMPLETIONS] | {"min_tokens": 1, "stop_token_ids": list(range(304))}
    response = await gateway.post(COMPLETIONS, body)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "min_tokens")


@paths
async def test_draft_is_a_switch_and_no_drafter_has_a_name_yet(gateway: Any, path: str) -> None:
    body = BODIES[path] | {"max_tokens": 2}
    modes = []
    for value in (False, True, None):
        assert (await gateway.post(path, body | {"draft": value})).status_code == 200
        modes.append(gateway.engine.requests[-1].draft_mode)
    assert modes == [1, 0, 0]
    error = (await gateway.post(path, body | {"draft": "mtp"})).json()["error"]
    assert (error["param"], error["code"]) == ("draft", "unsupported_parameter")
    assert "no drafter is served by name yet" in error["message"]
