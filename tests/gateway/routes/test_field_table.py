"""Every field of chat and completions: the values that are accepted, and those that are refused before any header.

One row a field, the values at its bounds and of every wrong type. What a value then does is asked elsewhere.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest

from fakes.engine import FakeEngine
from fakes.engine_model import FakeModel

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
USER = {"role": "user", "content": "hello"}
BASE: dict[str, dict[str, Any]] = {CHAT: {"messages": [USER]}, COMPLETIONS: {"prompt": "hello"}}
TOOL = {"type": "function", "function": {"name": "f"}}
# A value of each JSON type.
TRUE, NUMBER, TEXT = True, 1.5, "x"
LIST: list[Any] = [{}]
OBJECT: dict[str, Any] = {"x": {}}


@dataclass(frozen=True)
class Row:
    """One field; `beside` are other fields that it needs. null is accepted by each that is not required."""

    name: str
    accepted: list[Any]
    refused: list[Any]
    beside: dict[str, Any] = field(default_factory=dict)


def flag(name: str, **beside: Any) -> Row:
    """A boolean."""
    return Row(name, [True, False], [0, 1, "true", LIST, OBJECT], beside)


def ignored(name: str) -> Row:
    """A field that means nothing here."""
    return Row(name, [TRUE, NUMBER, TEXT, LIST, OBJECT], [])


SHARED = [
    Row("model", ["tiny", ""], [TRUE, NUMBER, LIST, OBJECT]),
    Row("temperature", [0, 0.0, 1, 2, 7.5], [-0.1, TRUE, TEXT, "1", LIST, OBJECT]),
    Row("top_p", [1, 0.01], [0, -1, 1.01, TRUE, TEXT, LIST, OBJECT]),
    Row("top_k", [-5, -1, 0, 1, 10**6, "20", 20.0], [20.5, "20.5", TRUE, TEXT, LIST, OBJECT]),
    Row("min_p", [0, 0.5, 1], [-0.01, 1.01, TRUE, TEXT, LIST, OBJECT]),
    Row("seed", [0, -1, 2**63 - 1, -(2**63), "7", 7.0], [NUMBER, 2**64, TRUE, TEXT, LIST, OBJECT]),
    *(
        Row(name, [-2, 0, 1.5, 2], [-2.01, 2.01, TRUE, TEXT, LIST, OBJECT])
        for name in ("presence_penalty", "frequency_penalty")
    ),
    Row("repetition_penalty", [0.1, 1, 2, 3.5], [0, -1, TRUE, TEXT, LIST, OBJECT]),
    Row(
        "logit_bias",
        [{}, {"0": 100, "303": -100}, {"5": 0.5}],
        [{"304": 1}, {"-1": 1}, {"a": 1}, {"5": 100.1}, {"5": -101}, {"5": "1"}, {"5": True}, TRUE, NUMBER, TEXT, LIST],
    ),
    Row("n", [1, 2, "2", 2.0], [0, -1, 3, NUMBER, TRUE, TEXT, LIST, OBJECT]),
    Row("stop", ["", "a", [], ["a", "", "b\n"], ["a"] * 64], [TRUE, NUMBER, [1], ["a", None], OBJECT, ["a"] * 65]),
    Row("stop_token_ids", [[], [0, 303]], [[304], [-1], [True], ["1"], [1.0], TRUE, NUMBER, TEXT, OBJECT]),
    flag("ignore_eos"),
    Row("min_tokens", [0, 1, 3, "3"], [-1, 4, NUMBER, TRUE, TEXT, LIST, OBJECT], {"max_tokens": 3}),
    flag("skip_special_tokens"),
    Row("stream", [False], [0, 1, "true", LIST, OBJECT]),
    Row(
        "stream_options",
        [{}, {"include_usage": True}, {"continuous_usage_stats": True}, {"include_obfuscation": False, "new": 1}],
        [TRUE, NUMBER, TEXT, LIST],
        {"stream": True},
    ),
    Row("stream_options", [], [{}, {"include_usage": True}], {"stream": False}),
    flag("draft"),
    Row("draft", [], ["mtp", "dflash2", "lookup", ""]),
    Row("priority", ["background", "foreground", 0, -1, 7, "3", 2.0], ["urgent", "", NUMBER, TRUE, LIST, OBJECT]),
    flag("return_token_ids"),
    *map(ignored, ("user", "a_field_of_next_month")),
]
BUDGETS = ("thinking_budget", "reasoning_budget", "thinking_token_budget")
CHAT_ROWS = [
    *SHARED,
    Row("messages", [[USER, {"role": "assistant", "content": None}]], [None, [], TEXT, NUMBER, OBJECT, ["x"], [{}]]),
    *(
        Row(name, [1, "3", 3.0], [0, -1, NUMBER, TRUE, TEXT, LIST, OBJECT])
        for name in ("max_tokens", "max_completion_tokens")
    ),
    flag("logprobs"),
    Row("top_logprobs", [0, 1, 20, "3"], [-1, 21, NUMBER, TRUE, TEXT, LIST, OBJECT], {"logprobs": True}),
    Row("top_logprobs", [0], [1, 20]),
    Row("tools", [[], [TOOL], [{"function": {"name": "A_b.c-9"}}]], [TRUE, NUMBER, TEXT, LIST, OBJECT, [TOOL, TOOL]]),
    Row("tool_choice", ["none", "auto"], ["any", "", TRUE, NUMBER, LIST, OBJECT], {"tools": [TOOL]}),
    flag("parallel_tool_calls", tools=[TOOL]),
    Row("functions", [[], [{"name": "f"}]], [TRUE, NUMBER, TEXT, LIST, OBJECT]),
    Row("function_call", ["none", "auto"], ["any", TRUE, NUMBER, LIST, OBJECT], {"functions": [{"name": "f"}]}),
    Row(
        "reasoning_effort",
        ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
        ["huge", "", "High", TRUE, NUMBER, LIST, OBJECT],
    ),
    Row(
        "chat_template_kwargs",
        [{}, {"enable_thinking": False}, {"thinking": True}, {"clear_thinking": True}, {"unknown": [1]}],
        [TRUE, NUMBER, TEXT, LIST, ""],
    ),
    *(Row(name, [0, 1, 10**9, "5", 5.0], [-1, NUMBER, TRUE, TEXT, LIST, OBJECT]) for name in BUDGETS),
    Row(
        "thinking",
        [True, False, {"type": "enabled"}, {"type": "disabled"}, {"type": "enabled", "budget_tokens": 9}],
        [NUMBER, TEXT, LIST, OBJECT, {}, {"type": "maybe"}, {"budget_tokens": 5}],
    ),
    flag("include_reasoning"),
    flag("add_generation_prompt"),
    Row(
        "continue_final_message",
        [True, False],
        [0, 1, "true", LIST, OBJECT],
        {"messages": [USER, {"role": "assistant", "content": "so"}]},
    ),
    Row("continue_final_message", [False], [True], {"add_generation_prompt": True}),
    Row("modalities", [["text"], []], [["audio"], ["text", "audio"], TRUE, NUMBER, TEXT, OBJECT]),
    Row("audio", [], [{"voice": "alloy", "format": "wav"}, TRUE, NUMBER, TEXT, LIST]),
    *map(
        ignored,
        (
            *("metadata", "store", "service_tier", "verbosity", "prediction", "safety_identifier", "moderation"),
            *("web_search_options", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
        ),
    ),
]
COMPLETION_ROWS = [
    *SHARED,
    Row(
        "prompt",
        ["a", [0], [1, 303], ["a", "b"], [[1], [2, 3]], ["a"] * 128],
        [
            *(None, "", [], [[]], [""], [304], [-1], [True], [1.0], [1, "a"], ["a", 1], [[1], "a"], ["a"] * 129),
            *(TRUE, NUMBER, OBJECT, LIST),
        ],
    ),
    Row("max_tokens", [1, "3", 3.0], [0, -1, NUMBER, TRUE, TEXT, LIST, OBJECT]),
    Row("max_tokens", [0, 1], [-1], {"echo": True}),
    flag("echo"),
    Row("logprobs", [0, 1, 5, 20, "3"], [-1, 21, NUMBER, TRUE, TEXT, LIST, OBJECT]),
    Row("suffix", [""], [TEXT, TRUE, NUMBER, LIST, OBJECT]),
    Row("best_of", [1, "1"], [0, 2, NUMBER, TRUE, TEXT, LIST, OBJECT]),
    Row("best_of", [1, 2], [3], {"n": 2}),
    flag("add_special_tokens"),
    # Only chat has them.
    *map(ignored, ("messages", "tools", "tool_choice", "reasoning_effort", "top_logprobs", "max_completion_tokens")),
]
TABLES = {CHAT: CHAT_ROWS, COMPLETIONS: COMPLETION_ROWS}
paths = pytest.mark.parametrize("path", TABLES)


@paths
async def test_no_value_that_a_row_refuses_reaches_the_engine(gateway: Any, path: str) -> None:
    for row in TABLES[path]:
        base = {"max_tokens": 3} | BASE[path] | row.beside
        for value in row.refused:
            for stream in [True, False] if "stream" not in {row.name, *row.beside} else [None]:
                body = base | ({} if stream is None else {"stream": stream}) | {row.name: value}
                response = await gateway.post(path, body)
                assert response.status_code == 400, (row.name, value, response.text)
                assert response.headers["content-type"] == "application/json"
                error = response.json()["error"]
                assert (error["type"], error["param"]) == ("invalid_request_error", row.name), (value, error)
                assert row.name in error["message"]
    assert gateway.engine.requests == []


@paths
async def test_every_value_that_a_row_accepts_is_served(gateway: Any, path: str) -> None:
    for row in TABLES[path]:
        base = {"max_tokens": 3} | BASE[path] | row.beside
        for value in [*row.accepted, *([] if None in row.refused else [None])]:
            response = await gateway.post(path, base | {row.name: value})
            assert response.status_code == 200, (row.name, value, response.text)


@paths
async def test_of_two_limits_the_newer_one_counts_in_chat_alone(gateway: Any, path: str) -> None:
    body = BASE[path] | {"max_tokens": 2, "max_completion_tokens": 4, "ignore_eos": True}
    usage = (await gateway.post(path, body)).json()["usage"]
    assert usage["completion_tokens"] == (4 if path == CHAT else 2)


async def test_scoring_a_prompt_gives_no_token_and_ends_by_length(gateway: Any) -> None:
    body = {"prompt": [[1, 2, 3], [4]], "max_tokens": 0, "echo": True, "logprobs": 1}
    reply = (await gateway.post(COMPLETIONS, body)).json()
    assert [choice["finish_reason"] for choice in reply["choices"]] == ["length", "length"]
    assert [len(choice["logprobs"]["tokens"]) for choice in reply["choices"]] == [3, 1]
    for choice in reply["choices"]:
        logprobs = choice["logprobs"]
        assert set(logprobs) == {"tokens", "token_logprobs", "top_logprobs", "text_offset"}
        assert {len(values) for values in logprobs.values()} == {len(logprobs["tokens"])}
        assert (logprobs["token_logprobs"][0], logprobs["top_logprobs"][0]) == (None, None)
        assert logprobs["text_offset"] == sorted(logprobs["text_offset"])
    assert (reply["usage"]["prompt_tokens"], reply["usage"]["completion_tokens"]) == (4, 0)


async def test_a_prompt_of_many_ids_counts_them_all(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(FakeModel(context_length=70_000), script=lambda _: [65] * 4))
    reply = (await gateway.post(COMPLETIONS, {"prompt": [7] * 65_536, "max_tokens": 2, "ignore_eos": True})).json()
    assert reply["usage"]["prompt_tokens"] == 65_536
