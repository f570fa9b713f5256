"""Chat: thinking, history, choices, seeds, limits, and the agreement of streamed and whole replies."""

import json
from typing import Any

import pytest

from fakes.engine import FakeEngine
from fakes.engine_model import FakeModel
from support.scripts import encode, say
from support.tiny_tokenizer import build_tokenizer, write_folder
from twinspark.engine.v1 import engine_pb2 as pb

CHAT = "/v1/chat/completions"
USER = {"role": "user", "content": "hello"}
HELLO: dict[str, Any] = {"messages": [USER]}


def text_of(prompt_token_ids: Any) -> str:
    """Give the text of ids."""
    return str(build_tokenizer().decode(list(prompt_token_ids), skip_special_tokens=False))


async def prompt_of(gateway: Any, body: dict[str, Any]) -> str:
    """Give the text of the prompt that the engine gets."""
    response = await gateway.post(CHAT, HELLO | {"max_tokens": 1} | body)
    assert response.status_code == 200, response.text
    return text_of(gateway.engine.requests[-1].prompt_token_ids)


def add_up(events: list[str], index: int = 0) -> dict[str, Any]:
    """Add up the chunks of one choice as a client does; check their order on the way."""
    assert events.pop() == "[DONE]"
    total: dict[str, Any] = {"content": "", "reasoning_content": "", "logprobs": [], "token_ids": []}
    finish: str | None = None
    chunks = [json.loads(event) for event in events]
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1
    deltas = [chunk["choices"][0] for chunk in chunks if chunk["choices"] and chunk["choices"][0]["index"] == index]
    assert deltas[0]["delta"] == {"role": "assistant", "content": ""}
    for choice in deltas[1:]:
        assert not finish
        assert "role" not in choice["delta"]
        assert all(choice["delta"].values())
        for key, value in choice["delta"].items():
            total[key] += value
        total["logprobs"] += (choice["logprobs"] or {"content": []})["content"]
        total["token_ids"] += choice.get("token_ids", [])
        finish = choice["finish_reason"]
        if finish:
            assert choice["delta"] == {}
    return total | {"finish": finish, "usage": chunks[-1].get("usage")}


@pytest.mark.parametrize("tokens_per_step", [1, 4])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"temperature": 0},
        {"seed": 7, "top_p": 0.9, "top_k": 50},
        {"stop": ["a", "é"], "seed": 3},
        {"logprobs": True, "top_logprobs": 3, "reasoning_effort": "none"},
        {"n": 2, "ignore_eos": True, "reasoning_effort": "none"},
    ],
)
async def test_streamed_and_whole_replies_agree(
    start_gateway: Any, tokens_per_step: int, params: dict[str, Any]
) -> None:
    gateway = await start_gateway(FakeEngine(tokens_per_step=tokens_per_step))
    body = HELLO | {"max_tokens": 40, "return_token_ids": True} | params
    whole = (await gateway.post(CHAT, body)).json()
    events = await gateway.events(CHAT, body | {"stream_options": {"include_usage": True}})
    for choice in whole["choices"]:
        total = add_up(list(events), choice["index"])
        assert total["content"] == choice["message"]["content"]
        assert total["reasoning_content"] == choice["message"].get("reasoning_content", "")
        assert total["finish"] == choice["finish_reason"]
        assert total["token_ids"] == choice["token_ids"]
        assert total["logprobs"] == (choice["logprobs"] or {"content": []})["content"]
        assert total["usage"] == whole["usage"]


async def test_a_request_without_a_seed_repeats_itself_and_seeds_change_the_reply(gateway: Any) -> None:
    async def ids(**params: Any) -> list[list[int]]:
        body = HELLO | {"max_tokens": 12, "ignore_eos": True, "return_token_ids": True} | params
        return [choice["token_ids"] for choice in (await gateway.post(CHAT, body)).json()["choices"]]

    assert await ids() == await ids()
    assert await ids(seed=1) == await ids(seed=1)
    assert await ids(seed=1) != await ids(seed=2)
    first, second = await ids(seed=1, n=2)
    assert [first] == await ids(seed=1)
    assert [second] == await ids(seed=2)
    assert await ids(seed=-1) == await ids(seed=2**64 - 1)


async def test_sampling_reaches_the_engine_and_defaults_come_from_the_folder(start_gateway: Any, tmp_path: Any) -> None:
    folder = write_folder(tmp_path / "m", generation={"temperature": 0.7, "top_p": 0.95, "top_k": 40})
    gateway = await start_gateway(model=folder)
    await gateway.post(CHAT, HELLO | {"max_tokens": 1})
    sampling = gateway.engine.requests[-1].sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (0.7, 0.95, 40, 0)
    body = {"temperature": 0, "top_p": 0.5, "top_k": -1, "min_p": 0.1, "seed": "5", "draft": False}
    await gateway.post(CHAT, HELLO | {"max_tokens": 1, "stop_token_ids": [5]} | body)
    request = gateway.engine.requests[-1]
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (0, 0.5, 0, 0.1)
    assert (sampling.seed, list(request.limits.stop_token_ids), request.draft_mode) == (5, [5], 1)
    assert request.priority == pb.PRIORITY_UNSPECIFIED
    for priority, seen in (("background", pb.PRIORITY_BACKGROUND), (1, pb.PRIORITY_BACKGROUND), (-1, 0)):
        await gateway.post(CHAT, HELLO | {"max_tokens": 1, "priority": priority})
        assert gateway.engine.requests[-1].priority == seen
    models = (await gateway.client.get("/v1/models")).json()["data"][0]
    expected = {"temperature": 0.7, "top_p": 0.95, "top_k": 40, "min_p": 0.0, "repetition_penalty": 1.0}
    assert models["sampling_defaults"] == expected


@pytest.mark.parametrize(
    ("body", "line", "end"),
    [
        ({}, "Max", "<think>"),
        ({"reasoning_effort": "minimal"}, "Low", "<think>"),
        ({"reasoning_effort": "low"}, "Low", "<think>"),
        ({"reasoning_effort": "medium"}, "High", "<think>"),
        ({"reasoning_effort": "high"}, "High", "<think>"),
        ({"reasoning_effort": "xhigh"}, "Max", "<think>"),
        ({"reasoning_effort": "max"}, "Max", "<think>"),
        ({"reasoning_effort": "none"}, None, "<think></think>"),
        ({"chat_template_kwargs": {"reasoning_effort": "low"}}, "Low", "<think>"),
        ({"chat_template_kwargs": {"reasoning_effort": "low"}, "reasoning_effort": "high"}, "High", "<think>"),
        ({"chat_template_kwargs": {"enable_thinking": False}}, None, "<think></think>"),
        ({"chat_template_kwargs": {"enable_thinking": False}, "reasoning_effort": "high"}, None, "<think></think>"),
        ({"chat_template_kwargs": {"enable_thinking": True}, "reasoning_effort": "none"}, "Max", "<think>"),
        ({"chat_template_kwargs": {"thinking": False}}, None, "<think></think>"),
        ({"chat_template_kwargs": {"thinking": {"type": "disabled"}}}, None, "<think></think>"),
        ({"chat_template_kwargs": {"thinking": {"type": "other"}}}, "Max", "<think>"),
        ({"chat_template_kwargs": {"thinking": False, "enable_thinking": True}}, "Max", "<think>"),
        ({"thinking": {"type": "disabled"}}, None, "<think></think>"),
        ({"thinking": {"type": "enabled"}, "reasoning_effort": "none"}, "Max", "<think>"),
        ({"thinking": False}, None, "<think></think>"),
    ],
)
async def test_thinking_switches(gateway: Any, body: dict[str, Any], line: str | None, end: str) -> None:
    effort = f"<|system|>Reasoning Effort: {line}" if line else ""
    assert await prompt_of(gateway, body) == f"[gMASK]<sop>{effort}<|user|>hello<|assistant|>{end}"


async def test_a_servers_effort_is_the_default_only(start_gateway: Any) -> None:
    gateway = await start_gateway(reasoning_effort="low")
    assert "Effort: Low" in await prompt_of(gateway, {})
    assert "Effort: High" in await prompt_of(gateway, {"reasoning_effort": "high"})


async def test_old_reasoning_is_kept_unless_the_request_clears_it(gateway: Any) -> None:
    history = [USER, {"role": "assistant", "content": "<think>\nwhy\n</think>\n\nyes"}, USER]
    kept = "<|assistant|><think>why</think>yes<|user|>"
    assert kept in await prompt_of(gateway, {"messages": history})
    cleared = await prompt_of(gateway, {"messages": history, "chat_template_kwargs": {"clear_thinking": True}})
    assert "<|assistant|><think></think>yes<|user|>" in cleared


async def test_messages_are_normalised_for_the_template(gateway: Any) -> None:
    messages = [
        {"role": "system", "content": "one"},
        {"role": "developer", "content": [{"type": "text", "text": "t"}, {"type": "text", "text": "wo"}]},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}], "name": "n"},
        {"role": "system", "content": "later"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        {"role": "user", "content": ""},
    ]
    text = await prompt_of(gateway, {"messages": messages, "reasoning_effort": "none"})
    assert text == (
        "[gMASK]<sop><|system|>one\n\ntwo<|user|>ab<|system|>later<|assistant|><think></think>no<|user|>"
        "<|assistant|><think></think>"
    )


@pytest.mark.parametrize(
    ("arguments", "rendered"),
    [
        ('{"a": "b"}', "<arg_key>a</arg_key><arg_value>b</arg_value>"),
        ({"a": 1}, "<arg_key>a</arg_key><arg_value>1</arg_value>"),
        ("", ""),
        (None, ""),
        ('{"a": "cut', '<arg_key>arguments</arg_key><arg_value>{"a": "cut</arg_value>'),
        ("[1]", "<arg_key>arguments</arg_key><arg_value>[1]</arg_value>"),
        ("[" * 100_000, None),
    ],
)
async def test_tool_calls_in_history_survive_any_arguments(gateway: Any, arguments: Any, rendered: str | None) -> None:
    call = {"id": "1", "function": {"name": "f", "arguments": arguments}}
    messages = [USER, {"role": "assistant", "tool_calls": [call]}, {"role": "function", "content": {"ok": True}}]
    response = await gateway.post(CHAT, {"messages": messages, "max_tokens": 1})
    if rendered is None:
        assert response.json()["error"]["code"] == "context_length_exceeded"
        return
    text = text_of(gateway.engine.requests[-1].prompt_token_ids)
    assert f'<tool_call>f{rendered}</tool_call><|observation|><tool_response>{{"ok": true}}</tool_response>' in text


async def test_a_legacy_function_call_in_history_is_a_tool_call(gateway: Any) -> None:
    messages = [USER, {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}]
    assert "<tool_call>f</tool_call>" in await prompt_of(gateway, {"messages": messages})


async def test_the_count_of_tokenize_is_the_prompts_usage(gateway: Any) -> None:
    body = {"messages": [USER, {"role": "assistant", "content": "<think>a</think>b"}, USER], "reasoning_effort": "low"}
    count = (await gateway.post("/tokenize", body)).json()
    reply = (await gateway.post(CHAT, body | {"max_tokens": 1, "return_token_ids": True})).json()
    assert reply["usage"]["prompt_tokens"] == count["count"]
    assert reply["prompt_token_ids"] == count["tokens"]


@pytest.mark.parametrize(
    ("setting", "names"),
    [("both", {"reasoning", "reasoning_content"}), ("reasoning", {"reasoning"})],
)
async def test_the_reasonings_name_is_a_setting(start_gateway: Any, setting: str, names: set[str]) -> None:
    gateway = await start_gateway(FakeEngine(script=say("why</think>so")), reasoning_field=setting)
    message = (await gateway.post(CHAT, HELLO)).json()["choices"][0]["message"]
    assert {name for name in message if name.startswith("reasoning")} == names
    assert {message[name] for name in names} == {"why"}
    message = (await gateway.post(CHAT, HELLO | {"include_reasoning": False})).json()["choices"][0]["message"]
    assert not any(name.startswith("reasoning") for name in message)


async def test_finish_reasons(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(script=say("why</think>abcabc")))

    async def finish(**params: Any) -> tuple[Any, ...]:
        choice = (await gateway.post(CHAT, HELLO | params)).json()["choices"][0]
        return choice["finish_reason"], choice["stop_reason"], choice["message"]["content"]

    assert await finish() == ("stop", None, "abcabc")
    assert await finish(max_tokens=6) == ("length", None, "ab")
    assert await finish(max_tokens=2) == ("length", None, "")
    assert await finish(stop=["ca", "zz"]) == ("stop", "ca", "ab")
    assert await finish(stop_token_ids=encode("c")) == ("stop", encode("c")[0], "ab")
    assert await finish(ignore_eos=True, max_tokens=20) == ("length", None, "abcabc")


async def test_a_seed_and_n_reach_the_engine_as_offsets(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(FakeModel(num_slots=3)))
    await gateway.post(CHAT, HELLO | {"n": 3, "seed": 11, "max_tokens": 1})
    seeds = sorted((request.sampling.seed, request.sampling.seed_offset) for request in gateway.engine.requests)
    assert seeds == [(11, 0), (11, 1), (11, 2)]
    assert len({request.request_id for request in gateway.engine.requests}) == 3


async def test_cached_tokens_are_reported(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(num_cached_tokens=5))
    usage = (await gateway.post(CHAT, HELLO | {"max_tokens": 1})).json()["usage"]
    assert usage["prompt_tokens_details"] == {"cached_tokens": 5}
