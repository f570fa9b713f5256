"""What the gateway relies on: handles, refusals with reasons, gaps, and masks that know markup by its tokens alone."""

import json
from collections.abc import Sequence
from typing import Any

import grpc
import pytest

from support.scripted_replies import encode_bytes
from support.scripts import USER, encode
from support.tiny_tokenizer import MARKUP, SPECIAL
from twinspark.grammar.v1 import grammar_pb2 as pb
from twinspark.grammar.v1.grammar_pb2_grpc import GrammarServiceStub
from twinspark_gateway.clients.grammar import GrammarClient
from twinspark_gateway.constraint import Constraint, Gap
from twinspark_gateway.errors import ApiError
from twinspark_gateway.generation import GrammarKind

SIZE = 304
PARAMETERS = {
    "type": "object",
    "properties": {"s": {"type": "string"}, "o": {"type": "object", "additionalProperties": True}},
}
TOOL = {"type": "function", "function": {"name": "f", "parameters": PARAMETERS}}
CALLS: dict[str, Any] = {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": True}
SOURCES = {
    GrammarKind.JSON_SCHEMA: '{"type":"integer"}',
    GrammarKind.JSON_OBJECT: "",
    GrammarKind.REGEX: "a|b",
    GrammarKind.EBNF: 'root ::= "a"',
    GrammarKind.CHOICE: '["a","b"]',
    GrammarKind.TOOL_CALLS: json.dumps(CALLS),
}


def ask(kind: GrammarKind, source: str, **fields: Any) -> Constraint:
    return Constraint(kind, source, "response_format.json_schema.schema", **fields)


async def test_every_kind_has_a_handle_that_depends_on_kind_and_source_alone(
    client: GrammarClient, notes: list[str]
) -> None:
    handles = {kind: (await client.compile(ask(kind, source))).handle for kind, source in SOURCES.items()}
    again = {kind: (await client.compile(ask(kind, source))).handle for kind, source in SOURCES.items()}
    assert handles == again
    assert len(set(handles.values())) == len(GrammarKind)
    assert notes == ["compiled"] * 2 * len(GrammarKind)


@pytest.mark.parametrize(
    ("kind", "source", "said"),
    [
        (GrammarKind.JSON_SCHEMA, '{"type":"objekt"}', "objekt"),
        (GrammarKind.JSON_SCHEMA, "{", ""),
        (GrammarKind.JSON_SCHEMA, "[" * 500 + "]" * 500, ""),
        (GrammarKind.REGEX, "(a", ""),
        (GrammarKind.REGEX, "a" * (1 << 20), ""),
        (GrammarKind.EBNF, "root ::= nothing", "nothing"),
        (GrammarKind.CHOICE, "[]", ""),
        (GrammarKind.TOOL_CALLS, '{"tools":[]}', "tools"),
    ],
)
async def test_what_does_not_compile_is_a_400_about_the_field_with_the_reason(
    client: GrammarClient, notes: list[str], kind: GrammarKind, source: str, said: str
) -> None:
    with pytest.raises(ApiError) as caught:
        await client.compile(ask(kind, source))
    error = caught.value
    assert (error.status, error.param, error.code) == (400, "response_format", "invalid_value")
    assert error.message.startswith("'response_format.json_schema.schema' is refused: ")
    assert said in error.message
    assert len(error.message) < 600
    assert notes == ["refused"]


async def test_gaps_are_told_and_strict_refuses_those_that_are_refused(client: GrammarClient) -> None:
    unique = json.dumps({"type": "array", "items": {"type": "integer"}, "uniqueItems": True})
    compiled = await client.compile(ask(GrammarKind.JSON_SCHEMA, unique))
    assert compiled.gaps == (Gap("uniqueItems", ""),)
    with pytest.raises(ApiError, match="uniqueItems at the root cannot be enforced"):
        await client.compile(ask(GrammarKind.JSON_SCHEMA, unique, strict=True))
    overlap = json.dumps({"oneOf": [{"type": "integer", "minimum": 0}, {"type": "integer", "maximum": 5}]})
    assert [gap.keyword for gap in (await client.compile(ask(GrammarKind.JSON_SCHEMA, overlap, strict=True))).gaps] == [
        "oneOf"
    ]


async def test_tools_are_named_by_their_places_in_the_request(client: GrammarClient) -> None:
    unique = {"type": "array", "items": {}, "uniqueItems": True}
    bad = {"name": "g", "strict": True, "parameters": {"type": "object", "properties": {"a": unique}}}
    source = json.dumps({"tools": [TOOL, {"type": "function", "function": bad}]})
    with pytest.raises(ApiError, match=r"uniqueItems at /tools/7/function/parameters/properties/a"):
        await client.compile(Constraint(GrammarKind.TOOL_CALLS, source, "tools", tool_positions=(2, 7)))


async def test_it_says_whether_it_serves(client: GrammarClient) -> None:
    assert await client.is_serving()


async def count_allowed(address: str, compiled: str, source: str, ids: Sequence[int]) -> int:
    """Give how many of the ids the grammar lets through, from the first on."""
    async with grpc.aio.insecure_channel(address) as channel:
        mask: Any = GrammarServiceStub(channel).Mask
        call = mask()
        grammar = pb.Grammar(handle=compiled, kind=pb.GRAMMAR_KIND_TOOL_CALLS, source=source)
        opened = pb.MaskOpen(grammar=grammar, vocabulary_size=SIZE, stop_token_ids=[USER])
        await call.write(pb.MaskRequest(open=opened))
        await call.read()
        for number, token_id in enumerate(ids):
            committed = ids[number - 1 : number] if number else []
            window = pb.MaskWindow(round=number, committed_token_ids=committed, draft_token_ids=[token_id])
            await call.write(pb.MaskRequest(window=window))
            if not (await call.read()).num_allowed_drafts:
                return number
    return len(ids)


BEGUN, KEY, VALUE = "<tool_call>f", "<tool_call>f<arg_key>s", "<tool_call>f<arg_key>s</arg_key><arg_value>x"
JSON_VALUE = "<tool_call>f<arg_key>o</arg_key><arg_value>"


@pytest.mark.parametrize(
    ("before", "tag"),
    [
        ("", "<tool_call>"),
        (BEGUN, "<arg_key>"),
        (BEGUN, "</tool_call>"),
        (KEY, "</arg_key>"),
        (f"{KEY}</arg_key>", "<arg_value>"),
        (VALUE, "</arg_value>"),
        (f"{JSON_VALUE}{{}}", "</arg_value>"),
        (f"{VALUE}</arg_value>", "</tool_call>"),
    ],
)
async def test_a_tag_that_is_due_is_its_token_and_never_the_same_text_in_other_tokens(
    client: GrammarClient, address: str, before: str, tag: str
) -> None:
    """So the gateway's parser looks for tags by token alone, and text that spells one is data wherever it stands."""
    source = json.dumps(CALLS)
    handle = (await client.compile(Constraint(GrammarKind.TOOL_CALLS, source, "tools"))).handle
    start = encode(before)
    assert await count_allowed(address, handle, source, [*start, *encode(tag)]) == len(start) + 1
    spelled = encode_bytes(tag.encode())
    assert len(spelled) > 1
    assert len(start) <= await count_allowed(address, handle, source, [*start, *spelled]) < len(start) + len(spelled)


@pytest.mark.parametrize("value", [f"{VALUE} ", f'{JSON_VALUE}{{"a": "'])
async def test_no_added_token_is_data(client: GrammarClient, address: str, value: str) -> None:
    source = json.dumps(CALLS)
    handle = (await client.compile(Constraint(GrammarKind.TOOL_CALLS, source, "tools"))).handle
    start = encode(value)
    for token in (*SPECIAL, *MARKUP):
        if token != "</arg_value>" or value.startswith(JSON_VALUE):
            assert await count_allowed(address, handle, source, [*start, *encode(token)]) == len(start), token
