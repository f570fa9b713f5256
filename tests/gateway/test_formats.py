"""Formats of answers: what is asked of the grammar service and of the engine, and what comes out."""

import json
import re
from typing import Any

import pytest

from support.constrained import build_engine, source_of
from support.scripts import encode
from twinspark.engine.v1 import engine_pb2 as pb
from twinspark.grammar.v1 import grammar_pb2
from twinspark_gateway.generation import GrammarKind

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
HELLO = [{"role": "user", "content": "hello"}]
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"messages": HELLO, "max_tokens": 200, "thinking": False},
    COMPLETIONS: {"prompt": "hello", "max_tokens": 200},
}
CITY = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}
DIGITS = 'root ::= [0-9] "-" [0-9]'


def schema_format(schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, **more}}


def text_of(reply: dict[str, Any]) -> str:
    (choice,) = reply["choices"]
    assert choice["finish_reason"] == "stop"
    return str(choice["message"]["content"] if "message" in choice else choice["text"])


# Fields of a request, what the model would rather say, and what it says.
ACCEPTED: list[tuple[dict[str, Any], str, str]] = [
    ({"response_format": {"type": "json_object"}}, 'Sure: {"a": 1}', '{"":""}'),
    ({"response_format": {"type": "json_object"}}, '{"a": [1, "é\\n"]} and more', '{"a": [1, "é\\n"]}'),
    ({"response_format": schema_format(CITY)}, '{"city": "Oslo", "days": 3}', '{"city": "Oslo", "days": 3}'),
    ({"response_format": schema_format(CITY, strict=True, description="A city.")}, '{"days"', '{"city":""}'),
    ({"response_format": schema_format(CITY, strict=False)}, '{"town"', '{"city":""}'),
    ({"response_format": schema_format(CITY, strict=None)}, '{"city": "</think><|user|>"}', '{"city": ""}'),
    ({"structured_outputs": {"json": CITY}}, "{", '{"city":""}'),
    ({"structured_outputs": {"json": json.dumps(CITY), "regex": None}}, "{", '{"city":""}'),
    ({"structured_outputs": {"json_object": True}}, "x", '{"":""}'),
    ({"structured_outputs": {"regex": "[a-c]{2}\\d"}}, "xyz", "aa1"),
    ({"structured_outputs": {"choice": ["yes", "no"], "json_object": False}}, "no", "no"),
    ({"structured_outputs": {"grammar": DIGITS}}, "7", "7-1"),
    ({"guided_json": CITY}, "{", '{"city":""}'),
    ({"guided_json": json.dumps(CITY)}, "{", '{"city":""}'),
    ({"guided_regex": "\n\\d"}, "\n4\n", "\n4"),
    ({"guided_choice": ["né", "no"]}, "maybe", "no"),
    ({"guided_grammar": DIGITS, "response_format": {"type": "text"}}, "x", "1-1"),
    ({"structured_outputs": {"choice": [" \n a "]}}, "a", " \n a "),
]


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
async def test_the_answer_is_exactly_the_value_streamed_or_not(
    start_gateway: Any, grammar_address: str, path: str
) -> None:
    gateway = await start_gateway(build_engine(grammar_address), grammar=grammar_address)
    for fields, said, expected in ACCEPTED:
        gateway.engine.wanted = build_engine("", want=said).wanted
        body = BODIES[path] | fields
        response = await gateway.post(path, body)
        assert response.status_code == 200, (fields, response.text)
        assert text_of(response.json()) == expected, fields
        assert await streamed(gateway, path, body) == expected, fields
        assert len(gateway.engine.requests) == gateway.engine.masks_opened


async def streamed(gateway: Any, path: str, body: dict[str, Any]) -> str:
    """Give the text of a stream that ends as it should."""
    events = [json.loads(event) for event in (await gateway.events(path, body))[:-1]]
    choices = [event["choices"][0] for event in events]
    assert [choice["finish_reason"] for choice in choices if choice["finish_reason"]] == ["stop"]
    return "".join(choice["delta"].get("content", "") if "delta" in choice else choice["text"] for choice in choices)


async def test_what_masks_the_engine_is_told_of(start_gateway: Any, grammar_address: str) -> None:
    gateway = await start_gateway(build_engine(grammar_address, want="why</think>no"), grammar=grammar_address)
    formats: list[tuple[dict[str, Any], GrammarKind, str]] = [
        ({"response_format": {"type": "json_object"}}, GrammarKind.JSON_OBJECT, ""),
        ({"guided_json": {"b": "é", "a": 1.5}}, GrammarKind.JSON_SCHEMA, '{"b":"é","a":1.5}'),
        ({"guided_regex": "\\d+"}, GrammarKind.REGEX, "\\d+"),
        ({"guided_choice": ["yes", "no"]}, GrammarKind.CHOICE, '["yes","no"]'),
        ({"guided_grammar": DIGITS}, GrammarKind.EBNF, DIGITS),
    ]
    for fields, kind, source in formats:
        assert (await gateway.post(CHAT, BODIES[CHAT] | fields)).status_code == 200
        grammar = gateway.engine.requests[-1].grammar
        assert (grammar.kind, grammar.source, grammar.start) == (kind, source, pb.GRAMMAR_START_AT_ONCE)
        assert re.fullmatch("[0-9a-f]{64}", grammar.handle)
    for fields in ({}, {"response_format": {"type": "text"}}, {"guided_json": None}):
        gateway.engine.script = gateway.engine.wanted
        assert (await gateway.post(CHAT, BODIES[CHAT] | fields)).status_code == 200
        assert not gateway.engine.requests[-1].HasField("grammar")


async def test_while_thinking_the_format_begins_after_it(start_gateway: Any, grammar_address: str) -> None:
    gateway = await start_gateway(build_engine(grammar_address, want='<|user|>{"a</think>{"b'), grammar=grammar_address)
    gateway.engine.wanted = build_engine("", want='{"why</think>{"b').wanted
    body = BODIES[CHAT] | {"thinking": True, "response_format": {"type": "json_object"}}
    response = await gateway.post(CHAT, body)
    assert gateway.engine.requests[-1].grammar.start == pb.GRAMMAR_START_AFTER_THINKING
    message = response.json()["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ('{"why', '{"b":""}')
    # Line breaks between reasoning and answer are layout only where the answer is free.
    gateway.engine.wanted = build_engine("", want="why</think>\n4").wanted
    reply = await gateway.post(CHAT, BODIES[CHAT] | {"thinking": True, "guided_regex": "\n\\d"})
    assert text_of(reply.json()) == "\n4"
    stopped = await gateway.post(CHAT, body | {"stop_token_ids": encode("</think>")})
    assert (stopped.status_code, stopped.json()["error"]["param"]) == (400, "stop_token_ids")
    # A completion has no reasoning, whatever its prompt is.
    completion = BODIES[COMPLETIONS] | {"prompt": "<think>", "guided_choice": ["a"]}
    assert text_of((await gateway.post(COMPLETIONS, completion)).json()) == "a"
    assert gateway.engine.requests[-1].grammar.start == pb.GRAMMAR_START_AT_ONCE


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
async def test_all_choices_share_one_compilation(start_gateway: Any, grammar_address: str, path: str) -> None:
    gateway = await start_gateway(build_engine(grammar_address, num_explored=6), grammar=grammar_address)
    body = BODIES[path] | {"n": 3, "guided_regex": "[a-z]{4,8}[0-9]"}
    reply = (await gateway.post(path, body)).json()
    texts = [choice["message"]["content"] if "message" in choice else choice["text"] for choice in reply["choices"]]
    assert len(set(texts)) == 3
    assert all(re.fullmatch("[a-z]{4,8}[0-9]", text) for text in texts)
    metrics = (await gateway.client.get("/metrics")).text
    assert 'grammar_compilations_total{outcome="compiled"} 1.0' in metrics
    assert len({request.grammar.handle for request in gateway.engine.requests}) == 1


TEXT = {"type": "text"}
NO_SCHEMA: list[Any] = [1, "x", [], True, None]
NO_TEXT: list[Any] = [1, [], {}, "", False]


def rows(field: str, values: list[Any], said: str) -> list[tuple[dict[str, Any], str, str]]:
    return [({field: value}, field, said) for value in values]


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    *rows("response_format", ["text", 1, [], "", False], "must be an object"),
    ({"response_format": {}}, "response_format", "'response_format.type' must be"),
    ({"response_format": {"type": None}}, "response_format", "'response_format.type' must be"),
    ({"response_format": {"type": 1}}, "response_format", "'response_format.type' must be"),
    ({"response_format": {"type": ["text"]}}, "response_format", "'response_format.type' must be"),
    ({"response_format": {"type": "xml"}}, "response_format", '(got "xml")'),
    (
        {"response_format": {"type": "json_schema"}},
        "response_format",
        "'response_format.json_schema' must be an object",
    ),
    ({"response_format": {"type": "json_schema", "json_schema": []}}, "response_format", "must be an object"),
    (
        {"response_format": {"type": "json_schema", "json_schema": {}}},
        "response_format",
        "schema' must be a JSON schema",
    ),
    *rows("response_format", [schema_format(bad) for bad in NO_SCHEMA], "must be a JSON schema, an object"),
    ({"response_format": schema_format({}, strict="yes")}, "response_format.json_schema.strict", "must be a boolean"),
    ({"response_format": schema_format({}, name=5)}, "response_format.json_schema.name", "must be a string"),
    ({"response_format": schema_format({}, description=5)}, "response_format.json_schema.description", "a string"),
    *rows("structured_outputs", ["x", 1, [], False], "must be an object"),
    ({"structured_outputs": {}}, "structured_outputs", "exactly one"),
    ({"structured_outputs": {"json_object": False}}, "structured_outputs", "exactly one"),
    ({"structured_outputs": {"json": {}, "regex": "a"}}, "structured_outputs", "exactly one"),
    ({"structured_outputs": {"json_object": 1}}, "structured_outputs", "'structured_outputs.json_object' must be"),
    ({"structured_outputs": {"json": "no"}}, "structured_outputs", "'structured_outputs.json' must be a JSON schema"),
    ({"structured_outputs": {"json": []}}, "structured_outputs", "must be a JSON schema"),
    ({"structured_outputs": {"regex": 1}}, "structured_outputs", "'structured_outputs.regex' must be a non-empty"),
    ({"structured_outputs": {"choice": "yes"}}, "structured_outputs", "must be a non-empty list of strings"),
    ({"structured_outputs": {"grammar": ""}}, "structured_outputs", "must be a non-empty string"),
    *rows("guided_json", [1, [], True, "{", "1"], "must be a JSON schema"),
    *rows("guided_regex", NO_TEXT, "must be a non-empty string"),
    *rows("guided_choice", [1, {}, [], "a", ["a", 1], [None]], "list of strings"),
    *rows("guided_grammar", NO_TEXT, "must be a non-empty string"),
    # Two kinds.
    ({"guided_json": {}, "guided_regex": "a"}, "guided_regex", "must not stand beside 'guided_json'"),
    ({"response_format": {"type": "json_object"}, "guided_choice": ["a"]}, "guided_choice", "must not stand beside"),
    (
        {"response_format": {"type": "json_object"}, "structured_outputs": {"regex": "a"}},
        "structured_outputs",
        "beside",
    ),
    # The reply could go on.
    ({"guided_regex": "a", "min_tokens": 1}, "min_tokens", "does not go with 'guided_regex'"),
    ({"response_format": {"type": "json_object"}, "ignore_eos": True}, "ignore_eos", "'response_format'"),
    # What does not compile, with the compiler's reason.
    ({"response_format": schema_format({"type": "objekt"})}, "response_format", "objekt"),
    (
        {"response_format": schema_format({"$ref": "#/$defs/no"})},
        "response_format",
        "'response_format.json_schema.schema'",
    ),
    ({"response_format": schema_format({"enum": []})}, "response_format", "is refused: "),
    ({"guided_json": {"type": "string", "minLength": 2, "maxLength": 1}}, "guided_json", "'guided_json' is refused: "),
    ({"guided_regex": "(a"}, "guided_regex", "'guided_regex' is refused: "),
    ({"guided_regex": "a(?=b)"}, "guided_regex", "'guided_regex' is refused: "),
    ({"structured_outputs": {"regex": "["}}, "structured_outputs", "'structured_outputs.regex' is refused: "),
    ({"guided_grammar": "root ::= nothing"}, "guided_grammar", "nothing"),
    ({"guided_grammar": "a ::= b"}, "guided_grammar", "is refused: "),
    # What masks do not enforce, under strict.
    (
        {"response_format": schema_format({"type": "array", "items": {}, "uniqueItems": True}, strict=True)},
        "response_format",
        "uniqueItems",
    ),
]


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
async def test_what_cannot_be_a_format_is_a_400_that_says_where_and_why(
    start_gateway: Any, grammar_address: str, path: str
) -> None:
    gateway = await start_gateway(grammar=grammar_address)
    for fields, param, said in REFUSED:
        for stream in (False, True):
            response = await gateway.post(path, BODIES[path] | {"stream": stream} | fields)
            assert response.status_code == 400, (fields, response.text)
            error = response.json()["error"]
            assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, "invalid_value")
            assert said in error["message"], (fields, error)
    assert gateway.engine.requests == []
    too_large = json.dumps(BODIES[path] | {"guided_json": {"const": 1}}).replace('"const": 1', '"const": 1e999')
    response = await gateway.client.post(path, content=too_large)
    assert (response.status_code, response.json()["error"]["param"]) == (400, None)


async def test_a_format_excludes_forced_calls_and_wins_over_chosen_ones(
    start_gateway: Any, grammar_address: str
) -> None:
    call = "<tool_call>f</tool_call>"
    gateway = await start_gateway(build_engine(grammar_address, want=f"{call}"), grammar=grammar_address)
    tools = {"tools": [{"type": "function", "function": {"name": "f", "strict": True}}]}
    named = {"type": "function", "function": {"name": "f"}}
    for choice in (
        "required",
        named,
        {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}},
    ):
        for fields in ({"response_format": {"type": "json_object"}}, {"guided_regex": "a"}):
            response = await gateway.post(CHAT, BODIES[CHAT] | tools | fields | {"tool_choice": choice})
            error = response.json()["error"]
            assert (response.status_code, error["param"]) == (400, next(iter(fields)))
            assert "beside a 'tool_choice'" in error["message"]
    for chosen in (None, "auto", "none"):
        body = BODIES[CHAT] | tools | {"guided_choice": ["f", "<tool_call>"], "tool_choice": chosen}
        assert text_of((await gateway.post(CHAT, body)).json()) in ("f", "<tool_call>")
        assert source_of(gateway.engine.requests[-1]) == ["f", "<tool_call>"]
        prompt_has_tools = chosen != "none"
        ids = (await gateway.post("/tokenize", body)).json()["tokens"]
        assert ids == list(gateway.engine.requests[-1].prompt_token_ids)
        without = (await gateway.post("/tokenize", {"messages": HELLO, "thinking": False})).json()["tokens"]
        assert (ids != without) == prompt_has_tools


async def test_a_value_that_a_limit_or_a_stop_string_cuts_says_so(start_gateway: Any, grammar_address: str) -> None:
    gateway = await start_gateway(build_engine(grammar_address, want='{"a": "xy"}'), grammar=grammar_address)
    body = BODIES[CHAT] | {"response_format": {"type": "json_object"}}
    (choice,) = (await gateway.post(CHAT, body | {"max_tokens": 4})).json()["choices"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("length", '{"a"')
    (choice,) = (await gateway.post(CHAT, body | {"stop": "y"})).json()["choices"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("stop", '{"a": "x')


def test_the_kinds_have_the_numbers_of_the_contract() -> None:
    for kind in GrammarKind:
        assert grammar_pb2.GrammarKind.Value(f"GRAMMAR_KIND_{kind.name}") == kind.value


UNIQUE = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
# A tree of references that no check gets to the end of.
BOMB = {
    "type": "array",
    "items": {"not": {"$ref": "#/$defs/d0"}},
    "$defs": {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]} for i in range(40)}
    | {"d40": {}},
}
OVERLAP = {"oneOf": [{"type": "integer", "minimum": 0}, {"type": "integer", "maximum": 5}]}
CHECKS: list[tuple[Any, str, str]] = [
    (UNIQUE, "[1, 2]", "valid"),
    (UNIQUE, "[1, 1]", "violated"),
    (OVERLAP, "7", "valid"),
    (OVERLAP, "3", "violated"),
    ({"type": "array", "items": {"$ref": "http://127.0.0.1:1/x"}}, "[1]", "unchecked"),
]


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
async def test_what_masks_do_not_enforce_is_checked_and_the_reply_says_how_it_went(
    start_gateway: Any, grammar_address: str, path: str
) -> None:
    gateway = await start_gateway(build_engine(grammar_address), grammar=grammar_address, check_seconds=600)
    for schema, said, outcome in CHECKS:
        gateway.engine.wanted = build_engine("", want=said).wanted
        body = BODIES[path] | {"response_format": schema_format(schema)}
        response = await gateway.post(path, body)
        assert text_of(response.json()) == said, schema
        assert response.json()["choices"][0]["schema_check"] == outcome, schema
        events = [json.loads(event) for event in (await gateway.events(path, body))[:-1]]
        assert [event["choices"][0].get("schema_check") for event in events if "choices" in event][-1] == outcome
    metrics = (await gateway.client.get("/metrics")).text
    assert 'schema_checks_total{outcome="violated"} 4.0' in metrics
    # Where all is enforced, or the answer was cut, nothing is checked.
    for fields in ({"response_format": schema_format(CITY)}, {"guided_json": UNIQUE, "max_tokens": 2}):
        gateway.engine.wanted = build_engine("", want="[1, 2]").wanted
        (choice,) = (await gateway.post(path, BODIES[path] | fields)).json()["choices"]
        assert "schema_check" not in choice
    strict = BODIES[path] | {"response_format": schema_format(OVERLAP, strict=True)}
    (choice,) = (await gateway.post(path, strict)).json()["choices"]
    assert choice["schema_check"] == "violated"


async def test_a_check_that_takes_for_ever_is_given_up(start_gateway: Any, grammar_address: str) -> None:
    engine = build_engine(grammar_address, want="[1]")
    gateway = await start_gateway(engine, grammar=grammar_address, check_seconds=0.5)
    (choice,) = (await gateway.post(CHAT, BODIES[CHAT] | {"guided_json": BOMB})).json()["choices"]
    assert (choice["message"]["content"], choice["schema_check"]) == ("[1]", "unchecked")
    assert 'schema_checks_total{outcome="unchecked"} 1.0' in (await gateway.client.get("/metrics")).text
