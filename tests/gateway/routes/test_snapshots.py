"""Every endpoint's reply as data: whole, and as the events of a stream."""

import json
import re
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from fakes.engine import FakeEngine
from support.scripts import say

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}
# Ends of ids: 32 digits of a reply, 24 of a call.
RANDOM = "([-_])([0-9a-f]{32}|[0-9a-f]{24})$"
REPLY = "why not</think>\n\nhello wörld"


def plain(reply: Any) -> Any:
    """Put fixed values for ids, times and digits of log probabilities."""
    if isinstance(reply, str):
        reply = json.loads(reply) if reply.startswith("{") else reply
    if isinstance(reply, dict):
        fixed = {
            "id": lambda v: re.sub(RANDOM, r"\1*", v),
            "created": lambda v: 0,
            "age_s": lambda v: 0,
        }
        return {key: fixed[key](value) if key in fixed else plain(value) for key, value in reply.items()}
    if isinstance(reply, list):
        return [plain(item) for item in reply]
    return round(reply, 6) if isinstance(reply, float) else reply


def by_choice(events: list[str]) -> list[Any]:
    """Sort events by choice: chunks of different choices come in any order, those of one choice in theirs."""
    replies = [plain(event) for event in events]
    return sorted(
        replies, key=lambda event: event["choices"][0]["index"] if event != "[DONE]" and event["choices"] else 99
    )


CHAT_CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "usage": {"stream_options": {"include_usage": True, "continuous_usage_stats": True}, "max_tokens": 5},
    "logprobs": {"logprobs": True, "top_logprobs": 2},
    "two_choices_and_a_stop": {"n": 2, "stop": "wö"},
    "token_ids": {"return_token_ids": True, "include_reasoning": False},
}


@pytest.mark.parametrize("case", CHAT_CASES)
async def test_chat(start_gateway: Any, snapshot: SnapshotAssertion, case: str) -> None:
    gateway = await start_gateway(FakeEngine(script=say(REPLY), tokens_per_step=3))
    body = HELLO | CHAT_CASES[case]
    assert by_choice(await gateway.events(CHAT, body)) == snapshot(name="streamed")
    body.pop("stream_options", None)
    assert plain((await gateway.post(CHAT, body)).json()) == snapshot(name="whole")


CALLS = (
    "why</think>Look.<tool_call>f<arg_key>x</arg_key><arg_value>ö</arg_value></tool_call>\n"
    "<tool_call>g</tool_call> Done."
)


async def test_chat_with_tools(start_gateway: Any, snapshot: SnapshotAssertion) -> None:
    gateway = await start_gateway(FakeEngine(script=say(CALLS), tokens_per_step=3))
    body = HELLO | {"tools": [{"type": "function", "function": {"name": name}} for name in "fg"], "max_tokens": 100}
    assert by_choice(await gateway.events(CHAT, body)) == snapshot(name="streamed")
    assert plain((await gateway.post(CHAT, body)).json()) == snapshot(name="whole")


COMPLETION_CASES: dict[str, dict[str, Any]] = {
    "plain": {"prompt": "hello"},
    "echo_with_logprobs": {"prompt": "the<sop>é", "echo": True, "logprobs": 1, "max_tokens": 4},
    "score_only": {"prompt": [269, 257], "echo": True, "logprobs": 0, "max_tokens": 0},
    "lists": {"prompt": [[1, 2], [3]], "n": 2, "max_tokens": 2, "echo": True},
    "ignore_eos": {"prompt": "hello", "ignore_eos": True, "max_tokens": 16, "return_token_ids": True},
}


@pytest.mark.parametrize("case", COMPLETION_CASES)
async def test_completions(start_gateway: Any, snapshot: SnapshotAssertion, case: str) -> None:
    gateway = await start_gateway(FakeEngine(script=say("hello wörld"), tokens_per_step=3))
    body = COMPLETION_CASES[case]
    params = {"stream_options": {"include_usage": True}}
    assert by_choice(await gateway.events(COMPLETIONS, body | params)) == snapshot(name="streamed")
    assert plain((await gateway.post(COMPLETIONS, body)).json()) == snapshot(name="whole")


async def test_models(start_gateway: Any, snapshot: SnapshotAssertion) -> None:
    gateway = await start_gateway(model_aliases=("small", "org/tiny"))
    assert plain((await gateway.client.get("/v1/models")).json()) == snapshot
    described = plain((await gateway.client.get("/v1/models")).json())["data"][0]
    for name in ("tiny", "small", "org/tiny"):
        assert plain((await gateway.client.get(f"/v1/models/{name}")).json()) == described


async def test_tokenize_and_detokenize(gateway: Any, snapshot: SnapshotAssertion) -> None:
    text = await gateway.post("/tokenize", {"prompt": "hello<|user|>é", "return_token_strs": True})
    assert text.json() == snapshot(name="text")
    chat = await gateway.post("/tokenize", HELLO | {"reasoning_effort": "none"})
    assert chat.json() == snapshot(name="messages")
    back = await gateway.post("/detokenize", {"tokens": text.json()["tokens"]})
    assert back.json() == snapshot(name="back")


async def test_health(gateway: Any, snapshot: SnapshotAssertion) -> None:
    reply = (await gateway.client.get("/health")).json()
    reply["uptime_s"], reply["idle_s"] = 0, 0.0
    assert plain(reply) == snapshot


async def test_metrics_names(gateway: Any, snapshot: SnapshotAssertion) -> None:
    await gateway.post(CHAT, HELLO | {"max_tokens": 2})
    text = (await gateway.client.get("/metrics")).text
    names = sorted(line.split()[2] for line in text.splitlines() if line.startswith("# TYPE"))
    ours = [name for name in names if not name.startswith(("python_", "process_")) and not name.endswith("_created")]
    assert ours == snapshot
