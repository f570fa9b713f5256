"""Masks of JSON schemas against jsonschema: what they let through is valid, and they let valid values through."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from support.grammar_texts import Grammars
from support.json_schemas import schema_and_value, schemas
from twinspark_grammar.compiling.job import Compiled, Refusal, Refused
from twinspark_grammar.errors import NoTokenAllowedError
from twinspark_grammar.schema.enforcement import find_unenforced
from twinspark_grammar.source import GrammarKind

SCHEMA = GrammarKind.JSON_SCHEMA
quick = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
thorough = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


def check_sampled_text(grammars: Grammars, schema: dict[str, Any], seed: int) -> None:
    """Compile, sample, validate; a schema that is refused, not wholly enforced, or without values says nothing."""
    outcome = grammars.run(SCHEMA, schema)
    assume(isinstance(outcome, Compiled) and not outcome.unenforced)
    grammar = grammars.compile(SCHEMA, schema)
    try:
        output = grammars.sample(grammar, seed)
    except NoTokenAllowedError:
        reject()
    if output is None:
        reject()
    text = grammars.decode(output)
    value = json.loads(text)
    Draft202012Validator(schema).validate(value)
    assert text == text.strip()


@quick
@given(schema=schemas(), seed=st.integers(0, 2**32))
def test_every_text_sampled_under_the_masks_is_valid(demo: Grammars, schema: dict[str, Any], seed: int) -> None:
    check_sampled_text(demo, schema, seed)


@pytest.mark.slow
@pytest.mark.timeout(600)
@thorough
@given(schema=schemas(), seed=st.integers(0, 2**32))
def test_every_text_sampled_under_the_masks_is_valid_in_many_schemas(
    demo: Grammars, schema: dict[str, Any], seed: int
) -> None:
    check_sampled_text(demo, schema, seed)


@quick
@given(
    pair=schema_and_value(), separators=st.sampled_from([(", ", ": "), (",", ":")]), indent=st.sampled_from([None, 2])
)
def test_no_token_of_a_valid_value_is_masked(
    grammars: Grammars, pair: tuple[dict[str, Any], Any], separators: tuple[str, str], indent: int | None
) -> None:
    schema, value = pair
    assert find_unenforced(schema) == []
    grammar = grammars.compile(SCHEMA, schema)
    text = json.dumps(value, separators=separators, indent=indent, ensure_ascii=False)  # names have one spelling
    assert grammars.accepts(grammar, text), text


@pytest.mark.parametrize("text", [" 1", "1 ", "```json\n1\n```", "1\n", "-0", "1.0", "01"])
def test_the_output_is_the_value_and_nothing_around_it(grammars: Grammars, text: str) -> None:
    grammar = grammars.compile(SCHEMA, {"type": "integer"})
    assert grammars.accepts(grammar, "1")
    assert not grammars.accepts(grammar, text)


def test_a_run_of_blanks_is_limited(grammars: Grammars) -> None:
    grammar = grammars.compile(SCHEMA, {"type": "array", "items": {"type": "integer"}})
    assert grammars.accepts(grammar, "[1," + " " * 32 + "2]")
    assert not grammars.accepts(grammar, "[1," + " " * 33 + "2]")


def test_objects_are_closed_and_hold_their_properties_in_order(grammars: Grammars) -> None:
    properties = {"b": {"type": "integer"}, "a": {"type": "integer"}}
    grammar = grammars.compile(SCHEMA, {"type": "object", "properties": properties, "required": ["b"]})
    assert grammars.accepts(grammar, '{"b": 1, "a": 2}')
    assert grammars.accepts(grammar, '{"b": 1}')
    assert not grammars.accepts(grammar, '{"a": 2, "b": 1}')
    assert not grammars.accepts(grammar, '{"a": 2}')
    assert not grammars.accepts(grammar, '{"b": 1, "c": 2}')


def test_a_recursive_schema_goes_as_deep_as_the_value(grammars: Grammars) -> None:
    node = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}}}
    grammar = grammars.compile(SCHEMA, {"$ref": "#/$defs/n", "$defs": {"n": {**node, "required": ["next"]}}})
    assert grammars.accepts(grammar, '{"next": ' * 20 + "null" + "}" * 20)
    assert not grammars.accepts(grammar, '{"next": ' * 20 + "1" + "}" * 20)


@quick
@given(text=st.text(alphabet=st.sampled_from('aF0é\x80ÿĀ漢\u2028😀"\\/\n\t\x01[]{}|^$.-'), min_size=1, max_size=4))
def test_a_text_of_a_schema_is_meant_letter_by_letter(demo: Grammars, text: str) -> None:
    spelled = json.dumps(text, ensure_ascii=False)
    for schema in ({"const": text}, {"enum": [text, 1]}, {"type": "string", "pattern": f"^{re.escape(text)}$"}):
        is_pattern = "pattern" in schema
        if is_pattern and spelled != f'"{text}"':  # such strings hold no escapes
            assert isinstance(demo.run(SCHEMA, schema), Refused)
            continue
        assert demo.accepts(demo.compile(SCHEMA, schema), spelled), schema
    named = {"type": "object", "properties": {text: {"type": "integer"}}, "required": [text]}
    assert demo.accepts(demo.compile(SCHEMA, named), f"{{{spelled}: 1}}")


@pytest.mark.parametrize("text", ['"a\tb"', '"a\nb"', '"a\x01b"', '"abcdef"', '""'])
def test_a_string_with_a_length_holds_no_control_characters_and_keeps_to_its_length(
    grammars: Grammars, text: str
) -> None:
    grammar = grammars.compile(SCHEMA, {"type": "string", "minLength": 1, "maxLength": 5})
    assert grammars.accepts(grammar, '"a漢é b"')
    assert not grammars.accepts(grammar, text)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("[]", "must be an object"),
        ("{", "not JSON"),
        ('{"type": "nothing"}', "nothing"),
        ('{"$ref": "#/$defs/absent"}', "absent"),
        ('{"enum": []}', "enum"),
        ('{"type": "string", "minLength": 3, "maxLength": 2}', "minLength 3 is greater than maxLength 2"),
        ('{"type": "integer", "minimum": NaN}', "NaN is not JSON"),
        ('{"$ref": "#"}', "Circular"),
        ('{"anyOf": []}', "anyOf at the root must not be empty"),
        ('{"type": "array", "items": {"oneOf": []}}', "oneOf at /items must not be empty"),
        ('{"type": "object", "properties": {"a": {"allOf": []}}}', "allOf at /properties/a must not be empty"),
        ('{"type": []}', "type at the root must not be empty"),
        ('{"type": "object", "required": null}', "required at the root must be an array of strings"),
        ('{"type": "string", "format": ["date"]}', "format at the root must be a string"),
        ('{"const": 1' + "0" * 400 + "}", "not JSON: a number is too large"),
        ('{"const": -1e400}', "not JSON: a number is too large"),
        ('{"type": "string", "pattern": "("}', "The parenthesis is not closed"),
        ('{"type": "string", "pattern": "a[^\\\\s\\\\S]"}', "leads to where no token is allowed"),
    ],
)
def test_a_schema_that_does_not_compile_is_refused_with_the_reason(demo: Grammars, schema: str, reason: str) -> None:
    outcome = demo.run(SCHEMA, schema)
    assert isinstance(outcome, Refused)
    assert reason in outcome.message
    assert "/cpp/" not in outcome.message
    assert not outcome.message.endswith(".")


RAW_PATTERNS = [
    '^"x"$',
    r"^a\tb$",
    r"^C:\\\\temp$",
    '^"[ab]$',
    r"^a[\x00-\x1f]$",
    '^["]$',
    r"^\x22\d$",
    r"^\u{22}$",
    r"^a\x00b$",
    r"^\cA$",
    ".{0,20000}",
    '"{3}',
]


@pytest.mark.parametrize("pattern", RAW_PATTERNS)
@pytest.mark.parametrize(
    ("kind", "make", "place"),
    [
        (SCHEMA, lambda pattern: {"type": "string", "pattern": pattern}, "pattern at the root"),
        (
            SCHEMA,
            lambda pattern: {"type": "array", "items": {"type": ["null", "string"], "pattern": pattern}},
            "pattern at /items",
        ),
        (SCHEMA, lambda pattern: {"type": "object", "patternProperties": {pattern: {}}}, "patternProperties at the"),
        (
            SCHEMA,
            lambda pattern: {"type": "object", "propertyNames": {"pattern": pattern}},
            "pattern at /propertyNames",
        ),
        (
            GrammarKind.STRUCTURAL_TAG,
            lambda pattern: {
                "type": "structural_tag",
                "format": {"type": "json_schema", "json_schema": {"type": "string", "pattern": pattern}},
            },
            "pattern at /format/json_schema",
        ),
    ],
)
def test_a_pattern_that_needs_escapes_is_refused_by_its_place(
    demo: Grammars, kind: GrammarKind, make: Callable[[str], Any], place: str, pattern: str
) -> None:
    outcome = demo.run(kind, make(pattern))
    assert isinstance(outcome, Refused)
    assert outcome.refusal is Refusal.INVALID
    assert outcome.message.startswith(place)
    assert "without escapes" in outcome.message


@pytest.mark.parametrize(
    ("pattern", "allowed", "denied"),
    [
        ('^["a]$', "a", '"'),
        ('^("|a)b$', "ab", '"b'),
        (r"^(a|[\x00-\x1f])$", "a", "\x01"),
        (r"^\[x\]\/'$", "[x]/'", "[x]/"),
        (r"^\d{2}-é\u2028$", "12-é\u2028", "1-é\u2028"),
        ("^.$", "b", "\\"),
        ("^[^é]+$", "漢", '"'),
        (r"^\S\é😀$", "bé😀", '"é😀'),
    ],
)
def test_what_needs_escapes_is_left_out_of_a_pattern_with_other_texts(
    demo: Grammars, pattern: str, allowed: str, denied: str
) -> None:
    grammar = demo.compile(SCHEMA, {"type": "string", "pattern": pattern})
    assert demo.accepts(grammar, f'"{allowed}"')
    assert not demo.accepts(grammar, f'"{denied}"')


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (r"a[^\s\S]", "leads to where no token is allowed"),
        (r"[^\s\S]", "no output matches the grammar"),
        ("a**", "not allowed"),
    ],
)
def test_an_expression_without_an_output_is_refused(demo: Grammars, expression: str, reason: str) -> None:
    outcome = demo.run(GrammarKind.REGEX, expression)
    assert isinstance(outcome, Refused)
    assert outcome.message.endswith(reason)
