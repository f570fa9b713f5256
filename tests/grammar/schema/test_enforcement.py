"""What the checks name is really not enforced, and what they let pass is."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from support.grammar_texts import Grammars
from twinspark_grammar.schema.enforcement import find_unenforced
from twinspark_grammar.schema.keywords import CONSTRAINTS, FORMATS
from twinspark_grammar.schema.table import ROWS
from twinspark_grammar.source import GrammarKind

SCHEMA = GrammarKind.JSON_SCHEMA
NUMBER, INTEGER, STRING = {"type": "number"}, {"type": "integer"}, {"type": "string"}
TAGGED = [
    {"type": "object", "properties": {"kind": {"const": name}, "v": value}, "required": ["kind"]}
    for name, value in (("a", INTEGER), ("b", STRING))
]

# Keyword, path, a schema in which it is not enforced, and a text that masks allow and the schema does not.
GAPS: list[tuple[str, str, Any, str]] = [
    ("type", "", {"const": "1", "type": "integer"}, '"1"'),
    ("minLength", "", {"const": "a", "minLength": 2}, '"a"'),
    ("minLength", "", {"enum": ["a", "bc"], "minLength": 2}, '"a"'),
    ("maximum", "", {"$ref": "#/$defs/n", "maximum": 3, "$defs": {"n": INTEGER}}, "4"),
    (
        "$ref",
        "/items",
        {"type": "array", "items": {"$ref": "#n"}, "$defs": {"n": {"$anchor": "n", **INTEGER}}},
        '["x"]',
    ),
    ("maximum", "", {"anyOf": [INTEGER], "maximum": 3}, "4"),
    ("type", "/anyOf/0", {"anyOf": [{"oneOf": [INTEGER], "type": "string"}]}, "4"),
    ("oneOf", "", {"oneOf": [NUMBER, INTEGER]}, "4"),
    ("allOf", "", {"allOf": [INTEGER, {"minimum": 3}]}, '"x"'),
    ("type", "", {"type": "integer", "allOf": [{"minimum": 3}]}, '"x"'),
    ("minimum", "/allOf/0", {"allOf": [{"minimum": 3}]}, "2"),
    ("not", "", {"type": "integer", "not": {"const": 3}}, "3"),
    ("if", "", {"type": "integer", "if": {"minimum": 3}, "then": {"const": 4}}, "5"),
    ("minimum", "", {"minimum": 3}, "2"),
    ("required", "", {"required": ["a"]}, "{}"),
    ("multipleOf", "", {"type": "number", "multipleOf": 2}, "3"),
    ("multipleOf", "", {"type": "integer", "multipleOf": 2, "minimum": 1}, "3"),
    ("format", "", {"type": "string", "format": "iri"}, '" "'),
    ("pattern", "", {"type": "string", "format": "date", "pattern": "^1"}, '"2020-01-01"'),
    ("minLength", "", {"type": "string", "pattern": "a+", "minLength": 3}, '"aa"'),
    ("maxLength", "", {"type": "string", "format": "date", "maxLength": 3}, '"2020-01-01"'),
    ("uniqueItems", "", {"type": "array", "items": INTEGER, "uniqueItems": True}, "[1, 1]"),
    ("contains", "", {"type": "array", "items": INTEGER, "contains": {"const": 3}}, "[1]"),
    ("maxContains", "", {"type": "array", "items": INTEGER, "contains": INTEGER, "maxContains": 1}, "[1, 1]"),
    ("required", "", {"type": "object", "properties": {"a": INTEGER}, "required": ["b"]}, '{"a": 1}'),
    (
        "patternProperties",
        "",
        {"type": "object", "patternProperties": {"^a": INTEGER, "a": STRING}},
        '{"a": 1}',
    ),
    (
        "propertyNames",
        "",
        {"type": "object", "properties": {"abc": INTEGER}, "propertyNames": {"maxLength": 2}},
        '{"abc": 1}',
    ),
    (
        "additionalProperties",
        "",
        {"type": "object", "properties": {"a": INTEGER}, "additionalProperties": STRING},
        '{"\\u0061": "x"}',
    ),
    (
        "additionalProperties",
        "",
        {"type": "object", "propertyNames": {"enum": ["a"]}, "additionalProperties": False},
        '{"a": 1}',
    ),
    ("minProperties", "", {"type": "object", "additionalProperties": INTEGER, "minProperties": 2}, '{"a":1,"a":1}'),
    (
        "dependentRequired",
        "",
        {"type": "object", "properties": {"a": INTEGER, "b": INTEGER}, "dependentRequired": {"a": ["b"]}},
        '{"a": 1}',
    ),
    (
        "dependentSchemas",
        "",
        {"type": "object", "properties": {"a": INTEGER}, "dependentSchemas": {"a": False}},
        '{"a": 1}',
    ),
    (
        "uniqueItems",
        "/$defs/deep/properties/x~1y",
        {
            "$ref": "#/$defs/deep",
            "$defs": {
                "deep": {"type": "object", "properties": {"x/y": {"type": "array", "items": {}, "uniqueItems": True}}}
            },
        },
        '{"x/y": [1, 1]}',
    ),
]

# A schema without gaps, a text that it allows, one that it does not.
ENFORCED: list[tuple[Any, str, str]] = [
    ({"const": "a", "type": "string", "minimum": 3}, '"a"', '"b"'),
    ({"enum": ["a", 1], "type": ["string", "integer"]}, "1", "2"),
    ({"oneOf": [STRING, INTEGER]}, "1", "null"),
    ({"oneOf": TAGGED}, '{"kind": "a", "v": 1}', '{"kind": "a", "v": "x"}'),
    (
        {"oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}], "$defs": {"a": TAGGED[0], "b": TAGGED[1]}},
        '{"kind": "b", "v": "x"}',
        '{"kind": "c"}',
    ),
    ({"allOf": [INTEGER]}, "1", '"x"'),
    ({"type": "integer", "minimum": 3, "exclusiveMaximum": 12}, "11", "12"),
    ({"type": "integer", "multipleOf": 3}, "27", "28"),
    ({"type": "integer", "multipleOf": 3, "minimum": 0, "maximum": 20}, "9", "21"),
    ({"type": "number", "exclusiveMinimum": 0, "maximum": 2.5}, "2.25", "2.75"),
    ({"type": "string", "minLength": 2, "maxLength": 3, "uniqueItems": True}, '"ab"', '"a"'),
    ({"type": "string", "pattern": "^a[0-9]+$"}, '"a1"', '"a"'),
    ({"type": "array", "items": INTEGER, "minItems": 1, "maxItems": 2}, "[1]", "[]"),
    ({"type": "array", "prefixItems": [INTEGER, STRING], "items": False}, '[1, "x"]', '["x", 1]'),
    ({"type": "array", "prefixItems": [INTEGER], "unevaluatedItems": STRING}, '[1, "x"]', "[1, 1]"),
    ({"type": "object", "properties": {"a": INTEGER}, "required": ["a"]}, '{"a": 1}', "{}"),
    ({"type": "object", "additionalProperties": INTEGER, "maxProperties": 1}, '{"x": 1}', '{"x": 1, "y": 2}'),
    ({"type": "object", "patternProperties": {"^[ab]$": INTEGER}}, '{"a": 1}', '{"a": "x"}'),
    ({"type": "object", "propertyNames": {"enum": ["a"]}, "additionalProperties": INTEGER}, '{"a": 1}', '{"a": "x"}'),
    ({"type": "object", "propertyNames": {"enum": ["a"]}}, '{"a": 1}', '{"b": 1}'),
    ({"type": "object", "properties": {"a": {}, "b": {}}, "minProperties": 1}, '{"b": 1}', "{}"),
    ({"properties": {"a": INTEGER}, "minimum": 3}, '{"a": 1}', '{"a": "x"}'),
    ({"type": ["string", "null"], "title": "t", "default": 3, "x-own": {"not": {}}}, "null", "1"),
]


def named(gap: Any) -> tuple[str, str]:
    return gap.keyword, gap.path


@pytest.mark.parametrize(("keyword", "path", "schema", "text"), GAPS, ids=lambda entry: str(entry)[:40])
def test_what_is_named_is_not_enforced(demo: Grammars, keyword: str, path: str, schema: Any, text: str) -> None:
    outcome = demo.run(SCHEMA, schema)
    assert (keyword, path) in [named(gap) for gap in outcome.unenforced]  # type: ignore[union-attr]
    assert demo.accepts(demo.compile(SCHEMA, schema), text)
    value: Any = json.loads(text)
    if "$anchor" not in json.dumps(schema):
        assert not Draft202012Validator(schema).is_valid(value) or keyword == "format"


@pytest.mark.parametrize(("schema", "allowed", "denied"), ENFORCED, ids=lambda entry: str(entry)[:40])
def test_what_is_not_named_is_enforced(demo: Grammars, schema: Any, allowed: str, denied: str) -> None:
    assert find_unenforced(schema) == []
    grammar = demo.compile(SCHEMA, schema)
    assert demo.run(SCHEMA, schema).unenforced == ()  # type: ignore[union-attr]
    assert demo.accepts(grammar, allowed)
    assert not demo.accepts(grammar, denied)
    assert Draft202012Validator(schema).is_valid(json.loads(allowed))


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_known_format_is_enforced(demo: Grammars, name: str) -> None:
    schema = {"type": "string", "format": name}
    assert find_unenforced(schema) == []
    assert not demo.accepts(demo.compile(SCHEMA, schema), '"< {}>"')


def test_only_a_oneof_with_branches_that_may_overlap_passes_strict() -> None:
    overlapping = {"oneOf": [{"type": "object", "properties": {"a": INTEGER}}, {"type": "object"}]}
    assert [(gap.keyword, gap.is_refused) for gap in find_unenforced(overlapping)] == [("oneOf", False)]
    assert all(gap.is_refused for _, _, schema, _ in GAPS for gap in find_unenforced(schema) if gap.keyword != "oneOf")


def test_a_schema_that_refers_to_itself_is_read_once() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}, "x": {"type": "array", "contains": {}}}}
    found = find_unenforced({"$ref": "#/$defs/n", "$defs": {"n": node}})
    assert [named(gap) for gap in found] == [("contains", "/$defs/n/properties/x")]


def test_every_keyword_that_constrains_is_in_the_table() -> None:
    listed = [name for row in ROWS for name in row.keywords]
    assert sorted(listed) == sorted(CONSTRAINTS)
    gaps = {keyword for keyword, *_ in GAPS}
    never = {name for row in ROWS if row.enforced == "never" for name in row.keywords}
    assert never - gaps == {"$dynamicRef", "$recursiveRef", "additionalItems", "dependencies", "minContains"}


@pytest.mark.parametrize("keyword", ["$dynamicRef", "$recursiveRef", "additionalItems", "dependencies", "minContains"])
def test_rare_keywords_are_named_wherever_they_are(keyword: str) -> None:
    assert keyword in [gap.keyword for gap in find_unenforced({"type": "array", "items": {}, keyword: 1})]
