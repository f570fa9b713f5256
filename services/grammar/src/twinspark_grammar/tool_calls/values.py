"""The text between `<arg_value>` tags, by the parameter's schema: strings are raw text, all else is JSON.

What xgrammar's own GLM style would do, but for the markers: there they are text, here they are tokens.
"""

import json
from dataclasses import dataclass
from typing import Any

from twinspark_grammar.schema.enforcement import types_of
from twinspark_grammar.schema.json_grammar import json_grammar
from twinspark_grammar.schema.references import resolve
from twinspark_grammar.schema.shape import settle_patterns

Format = dict[str, Any]

MOST_UNIONS = 16
"""Unions inside unions that are followed."""
VALUE_END = "</arg_value>"


def text_without(word: str) -> str:
    """Give the grammar of all texts in which the word does not occur; its first character is in it once.

    Rule i has read i characters of the word. Everything that may follow is inside the rule, so nearly all of its masks
    are made when it is compiled; a regular expression's are made token by token, in the middle of a reply.
    """
    first = word[0]
    rules = [f'root ::= [^{first}]* ("" | "{first}" start_1)']
    for i, char in enumerate(word[1:], start=1):
        goes_on = f' | "{char}" start_{i + 1}' if i < len(word) - 1 else ""
        rules.append(f'start_{i} ::= "" | "{first}" start_1{goes_on} | [^{first}{char}] root')
    return "\n".join(rules)


TEXT: Format = {"type": "grammar", "grammar": text_without(VALUE_END)}
"""Not xgrammar's any_text: with an excluded word that allows bytes that are no UTF-8, and so added tokens."""


class EndlessUnionError(Exception):
    """A parameter's schema refers to itself without a value in between."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """A tool's parameters, which references in them mean; `path`: their JSON pointer in the source."""

    schema: Any
    path: str


def value_format(schema: Any, path: str, root: Parameters, depth: int = 0) -> Format:
    """Give the format of one parameter. Raises EndlessUnionError and SchemaError."""
    if depth > MOST_UNIONS:
        raise EndlessUnionError
    found = resolve(schema, root.schema)
    if not isinstance(found, dict):
        return TEXT
    for keyword in ("anyOf", "oneOf"):
        if isinstance(found.get(keyword), list) and found[keyword]:
            members = enumerate(found[keyword])
            return _union([value_format(part, f"{path}/{keyword}/{i}", root, depth + 1) for i, part in members])
    values = [found["const"]] if "const" in found else found.get("enum")
    if isinstance(values, list) and values:
        return _union([_literal(value) for value in values])
    types = types_of(found)
    if not types:
        return TEXT
    formats = [_string_format(found)] if "string" in types else []
    others = [name for name in types if name != "string"]
    if others:
        formats.append(json_format({**found, "type": others}, path, root))
    return _union(formats)


def json_format(schema: dict[str, Any], path: str, root: Parameters) -> Format:
    """Give the format of a value that is written as JSON; references go on meaning the root. Raises SchemaError."""
    settle_patterns(schema, path, root.schema, root.path)
    document = {**_move_references(schema), "$defs": {"root": _move_references(root.schema)}}
    return {"type": "grammar", "grammar": json_grammar(json.dumps(document, ensure_ascii=False))}


def _string_format(schema: dict[str, Any]) -> Format:
    if isinstance(schema.get("pattern"), str):
        return {"type": "regex", "pattern": schema["pattern"]}
    least, most = schema.get("minLength", 0), schema.get("maxLength", "")
    if least or most != "":
        return {"type": "regex", "pattern": rf"[\s\S]{{{least},{most}}}"}
    return TEXT


def _literal(value: Any) -> Format:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return {"type": "const_string", "value": text}


def _union(formats: list[Format]) -> Format:
    if TEXT in formats:
        return TEXT
    return formats[0] if len(formats) == 1 else {"type": "or", "elements": formats}


def _move_references(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_move_references(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    moved = {name: _move_references(value) for name, value in schema.items()}
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        moved["$ref"] = "#/$defs/root" + reference.removeprefix("#")
    return moved
