"""Masks of JSON schemas against jsonschema: what they let through is valid, and they let valid values through."""

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from support.grammar_texts import Grammars
from support.json_schemas import schema_and_value, schemas
from twinspark_grammar.compiling.job import Compiled, Refused
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
        if is_pattern and spelled != f'"{text}"':
            continue  # such strings hold no escapes
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
    ],
)
def test_a_schema_that_does_not_compile_is_refused_with_the_reason(demo: Grammars, schema: str, reason: str) -> None:
    outcome = demo.run(SCHEMA, schema)
    assert isinstance(outcome, Refused)
    assert reason in outcome.message
    assert "/cpp/" not in outcome.message
