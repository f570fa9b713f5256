"""Bodies that no document allows: not JSON, not an object, cut off, in other encodings, nested, huge. None is a 500."""

import json
from collections import Counter
from typing import Any

import pytest
import requests
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from twinspark_gateway.web.body import MAX_DEPTH

PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses", "/tokenize", "/detokenize")
READ_MESSAGES = ("/v1/chat/completions", "/tokenize")
FIELDS = (
    *("messages", "prompt", "tokens", "model", "max_tokens", "n", "stop", "stream", "stream_options", "temperature"),
    *("top_p", "top_k", "seed", "logit_bias", "tools", "stop_token_ids", "tool_choice", "response_format", "echo"),
    *("chat_template_kwargs", "thinking", "reasoning_effort", "logprobs", "top_logprobs", "best_of", "priority"),
    *("system", "stop_sequences", "output_config", "input", "instructions", "reasoning", "metadata", "include"),
    *("min_tokens", "role", "content", "type", "text", "tool_calls", "function", "name", "arguments"),
)
ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "utf-7")
VALID: tuple[dict[str, Any], ...] = (
    {"messages": [{"role": "user", "content": "h\u00e9llo"}], "max_tokens": 4, "stop": ["x"], "stream": True},
    {"prompt": ["a", "b"], "max_tokens": 2, "logprobs": 2, "echo": True, "logit_bias": {"5": 1.5}, "n": 2},
    {"prompt": [1, 2, 3], "max_tokens": 2, "tokens": [1, 2, 3]},
    {
        "messages": [
            {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "content": [{"type": "text", "text": "x"}], "tool_call_id": "a"},
        ],
        "chat_template_kwargs": {"enable_thinking": False},
        "stream_options": {"include_usage": True},
    },
)
VALID += (
    {
        "messages": [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]},
        ],
        "system": [{"type": "text", "text": "x"}],
        "max_tokens": 4,
        "stream": True,
    },
    {
        "input": [
            {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "x"}]},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "x"},
        ],
        "max_output_tokens": 4,
        "stream": True,
    },
)
# JSON and what is nearly JSON: numbers at the edges of what is read, halves of surrogate pairs, empty things.
EDGES = (
    *("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e-400", "-0", "0.0", "1e308", "18446744073709551615"),
    *("18446744073709551616", "-9223372036854775808", "-9223372036854775809", "2147483648", "4294967296", "1.5"),
    *("01", ".5", "+1", "0x10", "1_000", "-", "9" * 300, "9" * 5000),
    *("null", "true", "false", '"\\ud800"', '"\\udc00\\ud800"', '"20"', '"1e3"', '""', "[]", "{}", "[[]]"),
    *("[{}]", '{"-1":1}', '{"x":1}', '{"":1}', '{"99999999999":1}', '{"1":1e400}', '{"type":[]}'),
)
NUMBERS = st.integers(1, 6000).map(lambda digits: "9" * digits)
MARKUP = ("<|user|>", "</think>", "<tool_call>", "[gMASK]<sop>", "\x00", "\ufffe")
TEXTS = st.text(max_size=20) | st.sampled_from(MARKUP)
LEAVES = (
    NUMBERS
    | st.sampled_from(EDGES)
    | TEXTS.map(json.dumps)
    | TEXTS.map(lambda text: json.dumps(text, ensure_ascii=False))
)
KEYS = st.sampled_from(FIELDS) | TEXTS
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda items: f"[{','.join(items)}]")
        # A list of pairs: a key may come twice.
        | st.lists(st.tuples(KEYS, inner), max_size=6).map(
            lambda pairs: "{" + ",".join(f"{json.dumps(key)}:{value}" for key, value in pairs) + "}"
        )
    ),
    max_leaves=20,
)
CLOSING = {"[": "]", '{"a":': "}"}


def nest(opening: str, depth: int, leaf: str = "0") -> str:
    """Give a value at a depth."""
    return opening * depth + leaf + CLOSING[opening] * depth


DEPTHS = st.sampled_from([10, 127, 128, 129, 500, 1000, 5000, 100_000])
DEEP = st.builds(nest, st.sampled_from(list(CLOSING)), DEPTHS, st.sampled_from(["0", '"\\ud800"', ""]))
FIELD_DEEP = st.builds(lambda name, deep: f'{{"{name}":{deep}}}', st.sampled_from(FIELDS), DEEP)


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """A valid body with one field replaced, and after that perhaps cut, or with bytes overwritten."""
    body = {name: json.dumps(value) for name, value in draw(st.sampled_from(VALID)).items()}
    body[draw(st.sampled_from(FIELDS))] = draw(DOCUMENTS)
    data = ("{" + ",".join(f'"{name}":{value}' for name, value in body.items()) + "}").encode("utf-8", "surrogatepass")
    damage = draw(st.sampled_from(["none", "none", "none", "cut", "overwrite"]))
    place = draw(st.integers(0, len(data)))
    if damage == "cut":
        return data[:place]
    return data if damage == "none" else data[:place] + draw(st.binary(min_size=1, max_size=4)) + data[place + 1 :]


BODIES = (
    changed()
    | changed()
    | changed()
    | changed()
    | st.binary(max_size=200)
    | st.builds(lambda text, name: text.encode(name, "replace"), DOCUMENTS, st.sampled_from(ENCODINGS))
    | (DEEP | FIELD_DEEP).map(str.encode)
)
HEADERS = st.sampled_from(
    [{}, {"Content-Type": "application/json"}, {"Content-Type": "text/plain; charset=utf-16"}, {"Content-Type": "\xff"}]
)


# Of streams that do not end with [DONE].
LAST_EVENTS = {"/v1/messages": "event: message_stop\n", "/v1/responses": '"sequence_number":'}


def check_error(path: str, response: requests.Response) -> None:
    """Check the shape of a refusal."""
    error = response.json()["error"]
    assert len(error["message"]) < 1000
    if path == "/v1/messages":
        assert set(error) == {"message", "type"}
        assert error["type"] in ("invalid_request_error", "not_found_error")
    else:
        assert (set(error), error["type"]) == ({"message", "type", "param", "code"}, "invalid_request_error")


def test_no_body_is_a_500(url: str, num_cases: int) -> None:
    statuses: Counter[int] = Counter()
    with requests.Session() as session:

        @settings(
            max_examples=num_cases,
            deadline=None,
            database=None,
            derandomize=num_cases <= 500,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.sampled_from(PATHS), BODIES, HEADERS)
        def check(path: str, body: bytes, headers: dict[str, str]) -> None:
            response = session.post(f"{url}{path}", data=body, headers=headers, timeout=60)
            statuses[response.status_code] += 1
            assert response.status_code in (200, 400, 404), response.text
            if response.status_code != 200:
                check_error(path, response)
            elif response.headers["content-type"].startswith("text/event-stream"):
                assert "event: error" not in response.text
                assert '"error":{' not in response.text
                assert LAST_EVENTS.get(path, "data: [DONE]\n\n") in response.text[-5000:]

        check()
    assert statuses[200] > num_cases // 50, statuses
    health = requests.get(f"{url}/health", timeout=60).json()
    assert (health["ok"], health["inflight"]) == (True, 0)
    print(dict(statuses))


@pytest.mark.parametrize("path", PATHS)
def test_no_edge_value_in_any_field_is_a_500(url: str, path: str) -> None:
    with requests.Session() as session:
        for name in FIELDS:
            for value in EDGES:
                places = [f'"{name}":{value}']
                if path in READ_MESSAGES:
                    places.append(f'"messages":[{{"role":"assistant","content":"a","{name}":{value}}}]')
                for place in places:
                    body = f'{{"messages":[{{"role":"user","content":"a"}}],"prompt":[5],"max_tokens":1,{place}}}'
                    response = session.post(f"{url}{path}", data=body, timeout=60)
                    assert response.status_code in (200, 400, 404), (name, value[:50], response.text)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("depth", [100, 200, 600, 980, 100_000])
@pytest.mark.parametrize("leaf", ["0", '"\\ud800"'])
def test_no_depth_in_any_field_is_a_500(url: str, path: str, depth: int, leaf: str) -> None:
    with requests.Session() as session:
        for name in FIELDS:
            for opening in CLOSING:
                value = nest(opening, depth, leaf)
                body = f'{{"messages":[{{"role":"user","content":"a"}}],"prompt":"a","max_tokens":1,"{name}":{value}}}'
                response = session.post(f"{url}{path}", data=body, timeout=60)
                assert response.status_code in ((200, 400) if depth < MAX_DEPTH else (400,)), (name, response.text)


@pytest.mark.parametrize("depth", [100, 200, 600, 980, 100_000])
def test_no_depth_of_arguments_or_variables_of_the_template_is_a_500(url: str, depth: int) -> None:
    for opening in CLOSING:
        value = f'{{"a":{nest(opening, depth)}}}'
        for arguments in (value, json.dumps(value)):
            call = f'{{"function":{{"name":"f","arguments":{arguments}}}}}'
            messages = f'[{{"role":"assistant","content":"","tool_calls":[{call}]}},{{"role":"user","content":"a"}}]'
            for more in ("{}", value):
                body = f'{{"max_tokens":1,"messages":{messages},"chat_template_kwargs":{more}}}'
                response = requests.post(f"{url}/v1/chat/completions", data=body, timeout=60)
                assert response.status_code in (200, 400), response.text
