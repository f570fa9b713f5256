"""Requests that are refused, each with the status, the field and the code it gets."""

from typing import Any

import pytest

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
MESSAGES = [{"role": "user", "content": "hello"}]

BODIES: list[tuple[bytes, int, str]] = [
    (b"", 400, "not JSON"),
    (b"{", 400, "not JSON"),
    (b"{'a': 1}", 400, "not JSON"),
    (b'{"messages": NaN}', 400, "NaN"),
    (b'{"messages": -Infinity}', 400, "Infinity"),
    (b'{"text": {"format": {"type": "text", "x": 1e999}}}', 400, "holds a number that is too large"),
    (b'{"tools": [{"x": [-1e999]}]}', 400, "holds a number that is too large"),
    (b'{"a_field_of_next_month": %s}' % (b"1" * 5000), 400, "holds a number that is too large"),
    (b"\xff\xfe", 400, "UTF-8"),
    (b'{"a":' * 100_000, 400, "nested"),
    (b"[]", 400, "object"),
    (b'"x"', 400, "object"),
    (b"1", 400, "object"),
    (b"null", 400, "object"),
]


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS, "/v1/responses", "/v1/messages", "/tokenize", "/detokenize"])
async def test_a_body_that_is_no_json_object_is_a_400(gateway: Any, path: str) -> None:
    for body, status, words in BODIES:
        response = await gateway.client.post(path, content=body)
        error = response.json()["error"]
        assert response.status_code == status, body[:20]
        assert words in error["message"], body[:20]
        assert error["type"] == "invalid_request_error"


FIELDS: list[tuple[str, Any]] = [
    ("model", 1),
    ("model", ["tiny"]),
    ("temperature", -0.1),
    ("temperature", True),
    ("temperature", "1"),
    ("temperature", 10**400),
    ("temperature", -(10**4000)),
    ("top_k", 1e308),
    ("seed", 10**30),
    ("n", 1e308),
    ("max_tokens", 1e308),
    ("max_tokens", 10**400),
    ("max_tokens", 2**64),
    ("stop_token_ids", [10**400]),
    ("stop_token_ids", False),
    ("stop", False),
    ("stop", 0),
    ("stop", {}),
    ("top_p", 0),
    ("top_p", 1.1),
    ("top_p", []),
    ("top_k", 20.5),
    ("top_k", True),
    ("top_k", "many"),
    ("min_p", -1),
    ("min_p", 1.5),
    ("seed", 1.5),
    ("seed", False),
    ("seed", 2**64),
    ("n", 0),
    ("n", 3),
    ("n", True),
    ("stop", 5),
    ("stop", ["a", 1]),
    ("stop", {"a": 1}),
    ("stop", ["x"] * 65),
    ("stop", "x" * 5000),
    ("stop_token_ids", "1"),
    ("stop_token_ids", [304]),
    ("stop_token_ids", [-1]),
    ("stop_token_ids", [True]),
    ("stop_token_ids", [1.0]),
    ("ignore_eos", 1),
    ("ignore_eos", "true"),
    ("skip_special_tokens", "no"),
    ("return_token_ids", 1),
    ("stream", "true"),
    ("stream", 1),
    ("stream_options", {"include_usage": True}),
    ("stream_options", []),
    ("max_tokens", -1),
    ("max_tokens", 1.5),
    ("max_tokens", True),
    ("max_tokens", "x"),
    ("presence_penalty", 2.01),
    ("presence_penalty", -2.01),
    ("frequency_penalty", 2.01),
    ("frequency_penalty", -3),
    ("frequency_penalty", False),
    ("repetition_penalty", 0),
    ("repetition_penalty", -1),
    ("repetition_penalty", 10**400),
    ("presence_penalty", "x"),
    ("presence_penalty", "0"),
    ("presence_penalty", []),
    ("frequency_penalty", ""),
    ("repetition_penalty", True),
    ("logit_bias", {"1": 100.5}),
    ("logit_bias", {"1": -101}),
    ("logit_bias", {"1": 10**400}),
    ("logit_bias", {"1": True}),
    ("logit_bias", {"1": "5"}),
    ("logit_bias", {"1": None}),
    ("logit_bias", {"304": 1}),
    ("logit_bias", {"9" * 40: 1}),
    ("logit_bias", {"-1": 1}),
    ("logit_bias", {"1.0": 1}),
    ("logit_bias", {"01": 1}),
    ("logit_bias", {"": 1}),
    ("logit_bias", {"hello": 1}),
    ("logit_bias", {"\u0661": 1}),
    ("logit_bias", []),
    ("logit_bias", ""),
    ("logit_bias", 0),
    ("logit_bias", False),
    ("min_tokens", -1),
    ("min_tokens", 1.5),
    ("min_tokens", 2**64),
    ("min_tokens", 513),
    ("min_tokens", False),
    ("min_tokens", []),
    ("min_tokens", ""),
    ("response_format", {"type": "json_schema", "json_schema": {}}),
    ("response_format", "text"),
    ("response_format", 1),
    ("response_format", []),
    ("response_format", ""),
    ("response_format", False),
    ("guided_json", 1),
    ("guided_regex", ""),
    ("guided_choice", []),
    ("guided_grammar", 1),
    ("structured_outputs", {}),
    ("structured_outputs", []),
    ("draft", 1),
    ("draft", "mtp"),
    ("draft", 0),
    ("draft", []),
    ("priority", "urgent"),
    ("priority", ""),
    ("priority", 0.5),
    ("priority", False),
    ("priority", []),
]
CHAT_FIELDS: list[tuple[str, Any]] = [
    ("messages", None),
    ("messages", "hello"),
    ("messages", []),
    ("messages", {}),
    ("messages", ["hello"]),
    ("messages", [{}]),
    ("messages", [{"content": "x"}]),
    ("messages", [{"role": 1, "content": "x"}]),
    ("messages", [{"role": "boss", "content": "x"}]),
    ("messages", [{"role": "user"}]),
    ("messages", [{"role": "user", "content": 1}]),
    ("messages", [{"role": "user", "content": {"text": "x"}}]),
    ("messages", [{"role": "user", "content": [1]}]),
    ("messages", [{"role": "user", "content": [{"type": "text"}]}]),
    ("messages", [{"role": "user", "content": [{"type": "text", "text": 1}]}]),
    ("messages", [{"role": "user", "content": [{"type": "poem", "text": "x"}]}]),
    ("messages", [{"role": "user", "content": [{"type": ["text"], "text": "x"}]}]),
    ("messages", [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]),
    ("messages", [{"role": "user", "content": [{"type": "refusal", "refusal": "x"}]}]),
    ("messages", [{"role": "assistant", "content": "x", "reasoning_content": 1}]),
    ("messages", [{"role": "assistant", "tool_calls": {}}]),
    ("messages", [{"role": "assistant", "tool_calls": [1]}]),
    ("messages", [{"role": "assistant", "tool_calls": [{"function": {}}]}]),
    ("messages", [{"role": "assistant", "tool_calls": [{"function": {"name": ""}}]}]),
    ("max_tokens", 0),
    ("max_completion_tokens", 0),
    ("max_completion_tokens", "5.5"),
    ("logprobs", 1),
    ("top_logprobs", 2),
    ("tools", 1),
    ("tools", {}),
    ("tools", ""),
    ("tools", False),
    ("functions", {}),
    ("function_call", ""),
    ("tool_choice", ""),
    ("tool_choice", False),
    ("parallel_tool_calls", 0),
    ("parallel_tool_calls", []),
    ("modalities", ""),
    ("modalities", {}),
    ("audio", []),
    ("thinking_budget", False),
    ("tool_choice", "required"),
    ("tool_choice", {"type": "function", "function": {"name": "f"}}),
    ("parallel_tool_calls", 1),
    ("functions", [{}]),
    ("functions", ["f"]),
    ("functions", [{"name": "f"}, {"name": "f"}]),
    ("functions", [{"name": "f", "parameters": []}]),
    ("function_call", {"name": "f"}),
    ("function_call", {}),
    ("function_call", "required"),
    ("modalities", ["audio"]),
    ("audio", {"voice": "x"}),
    ("reasoning_effort", "huge"),
    ("reasoning_effort", 3),
    ("chat_template_kwargs", "x"),
    ("chat_template_kwargs", []),
    ("thinking", "on"),
    ("thinking", 5),
    ("thinking", []),
    ("thinking", {}),
    ("thinking", {"type": "disable"}),
    ("thinking", {"type": 5}),
    ("thinking", {"type": None}),
    ("thinking", {"type": True}),
    ("thinking", {"type": ["enabled"]}),
    ("thinking", {"budget_tokens": 5}),
    ("thinking_budget", -1),
    ("reasoning_budget", "many"),
    ("thinking_token_budget", 1.5),
    ("include_reasoning", "yes"),
    ("continue_final_message", True),
    ("continue_final_message", 1),
    ("add_generation_prompt", "x"),
]
COMPLETION_FIELDS: list[tuple[str, Any]] = [
    ("prompt", None),
    ("prompt", ""),
    ("prompt", []),
    ("prompt", [[]]),
    ("prompt", ["a", ""]),
    ("prompt", 1),
    ("prompt", {}),
    ("prompt", [1, "a"]),
    ("prompt", ["a", 1]),
    ("prompt", ["a", [1]]),
    ("prompt", [1, True]),
    ("prompt", [1, 2.0]),
    ("prompt", [-1]),
    ("prompt", [304]),
    ("prompt", [[1], [2, None]]),
    ("prompt", ["a"] * 129),
    ("max_tokens", 0),
    ("logprobs", 21),
    ("logprobs", -1),
    ("logprobs", True),
    ("echo", 1),
    ("suffix", "end"),
    ("suffix", []),
    ("suffix", False),
    ("best_of", 2),
    ("best_of", 0),
    ("add_special_tokens", "x"),
]


async def check(gateway: Any, path: str, body: dict[str, Any], param: str) -> None:
    """Check that the body is refused for the field, streamed and not, before the engine hears of it."""
    for stream in [True, False] if param not in ("stream", "stream_options") else [None]:
        response = await gateway.post(path, body if stream is None else {"stream": stream, **body})
        assert response.status_code == 400, (param, body[param], response.text)
        assert response.headers["content-type"] == "application/json"
        error = response.json()["error"]
        assert set(error) == {"message", "type", "param", "code"}
        assert (error["type"], error["param"]) == ("invalid_request_error", param), error
        assert param in error["message"]
    assert gateway.engine.requests == []


async def test_chat_refuses_what_it_cannot_honour_and_names_the_field(gateway: Any) -> None:
    for i, (param, value) in enumerate([*FIELDS, *CHAT_FIELDS]):
        streamed = {} if param == "stream_options" else {"stream": i % 2 == 0}
        await check(gateway, CHAT, {"messages": MESSAGES} | streamed | {param: value}, param)


async def test_completions_refuse_what_they_cannot_honour_and_name_the_field(gateway: Any) -> None:
    for i, (param, value) in enumerate([*FIELDS, *COMPLETION_FIELDS]):
        streamed = {} if param == "stream_options" else {"stream": i % 2 == 0}
        await check(gateway, COMPLETIONS, {"prompt": "hello"} | streamed | {param: value}, param)


NESTED: list[tuple[str, dict[str, Any]]] = [
    ("stream_options.include_usage", {"stream": True, "stream_options": {"include_usage": 1}}),
    ("stream_options.continuous_usage_stats", {"stream": True, "stream_options": {"continuous_usage_stats": "x"}}),
    ("chat_template_kwargs.enable_thinking", {"chat_template_kwargs": {"enable_thinking": 0}}),
    ("chat_template_kwargs.reasoning_effort", {"chat_template_kwargs": {"reasoning_effort": "huge"}}),
    ("chat_template_kwargs.reasoning_effort", {"chat_template_kwargs": {"reasoning_effort": 3}}),
    ("chat_template_kwargs.messages", {"chat_template_kwargs": {"messages": []}}),
    ("chat_template_kwargs.chat_template", {"chat_template_kwargs": {"chat_template": "x"}}),
    ("thinking.budget_tokens", {"thinking": {"type": "enabled", "budget_tokens": -1}}),
    ("thinking.budget_tokens", {"thinking": {"type": "disabled", "budget_tokens": True}}),
]


async def test_a_field_inside_another_is_named_by_its_path(gateway: Any) -> None:
    for param, fields in NESTED:
        response = await gateway.post(CHAT, {"messages": MESSAGES} | fields)
        error = response.json()["error"]
        assert (response.status_code, error["param"]) == (400, param), error
        assert param.rpartition(".")[2] in error["message"]
    assert gateway.engine.requests == []


SHOWN: list[tuple[str, str, str]] = [
    ("temperature", "true", "(got true)."),
    ("messages", "[{}]", "(got null)."),
    (
        "messages",
        '[{"role": "user", "content": {"a": [null, false, "\u00e9"]}}]',
        '(got {"a": [null, false, "\u00e9"]}).',
    ),
    ("stop", '{"a": "b"}', '(got {"a": "b"}).'),
    ("top_k", '"' + "x" * 70_000 + '"', '(got "' + "x" * 59 + "...)."),
    ("stop_token_ids", "[" * 100 + "]" * 100, "(got " + "[" * 60 + "...)."),
    ("logit_bias", "[" + "1, " * 5000 + "1]", "(got [" + "1, " * 19 + "1,...)."),
    ("max_tokens", "1e308", "(got 1e+308)."),
    ("max_tokens", "9" * 400, "(got " + "9" * 60 + "...)."),
]


@pytest.mark.parametrize(("param", "value", "words"), SHOWN, ids=[f"{p}-{v[:12]}" for p, v, _ in SHOWN])
async def test_a_refused_value_is_shown_as_json_and_shortened(gateway: Any, param: str, value: str, words: str) -> None:
    messages = "" if param == "messages" else '"messages": [{"role": "user", "content": "a"}], '
    response = await gateway.client.post(CHAT, content=f'{{{messages}"{param}": {value}}}'.encode())
    error = response.json()["error"]
    assert (response.status_code, error["param"]) == (400, param), error
    assert error["message"].endswith(words), error["message"]
    assert len(error["message"]) < 200


NEUTRAL: dict[str, list[Any]] = {
    "presence_penalty": [0, 0.0, -2, 2],
    "frequency_penalty": [0, -2, 2.0],
    "repetition_penalty": [1, 1.0, 1e-300, 1e300],
    "logit_bias": [{}, {"0": 100, "303": -100.0}],
    "min_tokens": [0, "0", 1, 1.0],
    "response_format": [{"type": "text"}],
    "draft": [False, True],
    "priority": [0, -3, "0", "foreground", "background", 7],
    "n": [1, "1", 1.0],
    "top_k": [-1, 0, "20", 20.0],
    "seed": [-5, "7", 2**63],
    "stop": ["", [], [""]],
    "stop_token_ids": [[]],
    "user": ["me", 5],
    "metadata": [{"a": 1}],
    "a_field_of_next_month": [1],
}
NEUTRAL_CHAT: dict[str, list[Any]] = {
    "tools": [[]],
    "functions": [[]],
    "tool_choice": ["none", "auto"],
    "parallel_tool_calls": [True, False],
    "modalities": [["text"]],
    "thinking_budget": [0, 5, "5", 5.0],
    "reasoning_budget": [1],
    "thinking_token_budget": [2**40],
    "thinking": [
        {"type": "enabled", "budget_tokens": 0},
        {"type": "enabled", "budget_tokens": 5},
        {"type": "disabled", "budget_tokens": None},
        True,
        False,
    ],
    "store": [True],
    "verbosity": ["low"],
    "top_logprobs": [0],
    "max_completion_tokens": ["3", 3.0],
    "chat_template_kwargs": [{}, {"unknown": 1}, {"thinking": {"type": "disable"}}, {"thinking": 5}],
    "web_search_options": [{}],
}

NEUTRAL_COMPLETION: dict[str, list[Any]] = {"suffix": [""], "best_of": [1], "messages": [5], "tools": [[{}]]}


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
async def test_null_and_values_that_ask_for_nothing_pass(gateway: Any, path: str) -> None:
    base = {"messages": MESSAGES, "prompt": "hello", "max_tokens": 1}
    values = NEUTRAL | (NEUTRAL_CHAT if path == CHAT else NEUTRAL_COMPLETION)
    tables = [*FIELDS, *(CHAT_FIELDS if path == CHAT else COMPLETION_FIELDS)]
    nulls = dict.fromkeys((name for name, _ in tables if name not in ("messages", "prompt", "max_tokens")), None)
    bodies: list[dict[str, Any]] = [{name: value} for name, choices in values.items() for value in choices]
    for body in [nulls, *bodies]:
        response = await gateway.post(path, base | body)
        assert response.status_code == 200, (body, response.text)


async def test_min_tokens_above_the_limit_of_the_reply_is_refused(gateway: Any) -> None:
    for path, body in (
        (CHAT, {"messages": MESSAGES, "max_tokens": 3, "min_tokens": 4}),
        (CHAT, {"messages": MESSAGES, "max_tokens": 30, "max_completion_tokens": 3, "min_tokens": 4}),
        (COMPLETIONS, {"prompt": "a", "max_tokens": 3, "min_tokens": 4}),
        (COMPLETIONS, {"prompt": "a", "min_tokens": 17}),
        (COMPLETIONS, {"prompt": [1] * 510, "min_tokens": 3}),
        (COMPLETIONS, {"prompt": "a", "max_tokens": 0, "echo": True, "min_tokens": 1}),
    ):
        await check(gateway, path, body, "min_tokens")


async def test_another_model_is_a_404(gateway: Any) -> None:
    for path, body in ((CHAT, {"messages": MESSAGES}), (COMPLETIONS, {"prompt": "a"}), ("/tokenize", {"prompt": "a"})):
        response = await gateway.post(path, body | {"model": "gpt"})
        assert response.status_code == 404
        assert response.json()["error"]["code"] == "model_not_found"
    response = await gateway.client.get("/v1/models/gpt")
    assert (response.status_code, response.json()["error"]["code"]) == (404, "model_not_found")


async def test_the_served_name_an_alias_and_no_name_are_the_model(start_gateway: Any) -> None:
    gateway = await start_gateway(model_name="org/name", model_aliases=("short",))
    for name in ("org/name", "short", "", None):
        response = await gateway.post(CHAT, {"messages": MESSAGES, "max_tokens": 1, "model": name})
        assert response.json()["model"] == "org/name"


async def test_unknown_paths_and_methods_are_json_errors(gateway: Any) -> None:
    for method, path, status in (("GET", "/nope", 404), ("GET", CHAT, 405), ("POST", "/v1/models", 405)):
        response = await gateway.client.request(method, path)
        assert response.status_code == status
        assert response.json()["error"]["type"] == "invalid_request_error"


async def test_a_prompt_that_exceeds_the_context_has_the_wording_that_clients_parse(gateway: Any) -> None:
    count = (await gateway.post("/tokenize", {"messages": MESSAGES})).json()["count"]
    response = await gateway.post(CHAT, {"messages": MESSAGES, "max_tokens": 513 - count, "stream": True})
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", "messages")
    assert error["message"] == (
        f"This model's maximum context length is 512 tokens. However, you requested 513 tokens ({count} in the "
        f"messages, {513 - count} in the completion). Please reduce the length of the messages or completion."
    )
    response = await gateway.post(COMPLETIONS, {"prompt": [1] * 500, "max_tokens": 13})
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", "prompt")
    assert "(500 in the prompt, 13 in the completion)" in error["message"]
    for path, body in (
        (CHAT, {"messages": [{"role": "user", "content": "x" * 600}]}),
        (COMPLETIONS, {"prompt": [1] * 512}),
    ):
        error = (await gateway.post(path, body)).json()["error"]
        assert error["code"] == "context_length_exceeded"
        assert "However, your prompt resulted in " in error["message"]
        assert error["message"].endswith("Please reduce the length of the messages.")


async def test_a_request_that_just_fits_is_admitted_and_a_missing_limit_is_cut_to_what_is_left(gateway: Any) -> None:
    response = await gateway.post(COMPLETIONS, {"prompt": [1] * 500, "max_tokens": 12, "ignore_eos": True})
    assert response.json()["usage"]["total_tokens"] == 512
    response = await gateway.post(COMPLETIONS, {"prompt": [1] * 500, "ignore_eos": True})
    assert response.json()["usage"]["completion_tokens"] == 12
    response = await gateway.post(COMPLETIONS, {"prompt": [1] * 512, "max_tokens": 0, "echo": True})
    assert response.json()["usage"] | {"total_tokens": 512} == response.json()["usage"]


async def test_tokenize_and_detokenize_refuse_bad_bodies(gateway: Any) -> None:
    for path, body in (
        ("/tokenize", {}),
        ("/tokenize", {"prompt": 1}),
        ("/tokenize", {"prompt": ["a"]}),
        ("/tokenize", {"prompt": "a", "messages": MESSAGES}),
        ("/tokenize", {"messages": []}),
        ("/tokenize", {"messages": MESSAGES, "tools": [{}]}),
        ("/tokenize", {"messages": MESSAGES, "add_generation_prompt": True, "continue_final_message": True}),
        ("/detokenize", {}),
        ("/detokenize", {"tokens": "a"}),
        ("/detokenize", {"tokens": [-1]}),
        ("/detokenize", {"tokens": [304]}),
        ("/detokenize", {"tokens": [1.0]}),
    ):
        response = await gateway.post(path, body)
        assert response.status_code == 400, (path, body, response.text)


async def test_halves_of_surrogate_pairs_do_not_break_a_request(gateway: Any) -> None:
    body = b'{"messages": [{"role": "user", "content": "cut \\ud83d"}], "max_tokens": 1}'
    response = await gateway.client.post(CHAT, content=body)
    assert response.status_code == 200
    response = await gateway.client.post("/tokenize", content=b'{"prompt": "\\ud83d\\ude00"}')
    assert (await gateway.post("/detokenize", {"tokens": response.json()["tokens"]})).json()["prompt"] == "😀"
