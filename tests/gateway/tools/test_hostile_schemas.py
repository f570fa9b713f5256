"""Any JSON in `tools` and `tool_choice` is offered or a 400; any schema gives a value."""

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from twinspark_gateway.errors import ApiError
from twinspark_gateway.schemas.fields import Fields
from twinspark_gateway.schemas.tools import read_tool_offer
from twinspark_gateway.tools.offer import ToolOffer
from twinspark_gateway.tools.values import read_value

KEYS = st.sampled_from(
    [
        "type",
        "function",
        "name",
        "parameters",
        "properties",
        "required",
        "strict",
        "allowed_tools",
        "mode",
        "tools",
        "f",
    ]
)
WORDS = st.sampled_from(["function", "allowed_tools", "auto", "required", "f", "g", "object", ""])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
SCHEMA_KEYS = st.sampled_from(["type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "properties", "$defs", "a"])
SCHEMA_WORDS = st.sampled_from(
    ["string", "integer", "number", "boolean", "null", "array", "object", "any", "#", "#/$defs/a"]
)
SCHEMA: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | SCHEMA_WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(SCHEMA_KEYS, inner, max_size=4),
    max_leaves=15,
)
RAW = st.text(max_size=8) | st.sampled_from(
    [
        "null",
        "None",
        "true",
        "1",
        "1.0",
        '"1"',
        "1e999",
        "[",
        "[1",
        "{",
        '{"a":1',
        "-",
        "9" * 5000,
        "\ud800",
        '"\\ud800"',
        "",
    ]
)


@given(tools=JSON | st.lists(JSON, max_size=2), choice=JSON, parallel=JSON)
@example(
    tools=[{"function": {"name": "f"}}],
    choice={"type": "allowed_tools", "allowed_tools": {"tools": [None]}},
    parallel=None,
)
def test_any_request_is_offered_or_a_400(tools: Any, choice: Any, parallel: Any) -> None:
    body = {"tools": tools, "tool_choice": choice, "parallel_tool_calls": parallel}
    offer = offer_of(body)
    if isinstance(offer, ApiError):
        assert offer.status == 400
        assert offer.param in body
        assert f"'{offer.param}" in offer.message
        json.dumps(offer.body())
        return
    assert all(offer.match(tool.name) is tool for tool in offer.tools)
    assert all(offer.may_begin(f" {tool.name}"[:end]) for tool in offer.tools for end in range(len(tool.name) + 2))


def offer_of(body: dict[str, Any]) -> ToolOffer | ApiError:
    try:
        return read_tool_offer(Fields(body))
    except ApiError as error:
        return error


@given(text=RAW, schema=SCHEMA, root=st.dictionaries(SCHEMA_KEYS, SCHEMA))
@example(text="x", schema={"$ref": "#/$defs/a"}, root={"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 9}}})
def test_any_schema_gives_a_value_that_is_json(text: str, schema: Any, root: Any) -> None:
    value = read_value(text, schema, root)
    spelled = json.dumps(value)
    if schema == {"type": "string"}:
        assert value == text
    if (
        isinstance(value, str)
        and value != text
        and not json.dumps(schema).count("enum") + json.dumps(schema).count("const")
    ):
        # A string that is not the text itself was spelled as JSON, where the schema names no type.
        assert json.loads(text) == value
    assert isinstance(spelled, str)
