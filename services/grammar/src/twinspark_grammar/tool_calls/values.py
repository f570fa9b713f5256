"""The text between `<arg_value>` tags, by the parameter's schema: strings are raw text, all else is JSON.

What xgrammar's own GLM style would do, but for the markers: there they are text, here they are tokens.
"""

import json
import re
from typing import Any

from twinspark_grammar.schema.enforcement import types_of
from twinspark_grammar.schema.lengths import lengths_as_patterns
from twinspark_grammar.schema.references import resolve

Format = dict[str, Any]

MOST_UNIONS = 16
"""Unions inside unions that are followed."""
MAX_BLANKS = 32
"""Blanks in a row between the parts of JSON."""
VALUE_END = "</arg_value>"


def pattern_without(word: str) -> str:
    """Give a regular expression of all texts in which the word does not occur; its first character is in it once.

    A text is other characters, and starts of the word: each is followed by another start, a character that does not
    go on with it, or the end.
    """
    first, rest = word[0], word[1:]
    start, mismatch = "", ""
    for i, char in reversed(list(enumerate(rest, start=1))):
        start = rf"(?:{re.escape(char)}{start})?" if i < len(rest) else ""
        other = rf"[^{first}{char}]"
        mismatch = rf"(?:{other}|{re.escape(char)}{mismatch})" if mismatch else other
    starts = rf"(?:{first}{start})*"
    return rf"(?:[^{first}]|{starts}{first}{mismatch})*{starts}"


TEXT: Format = {"type": "regex", "pattern": pattern_without(VALUE_END)}
"""Not xgrammar's any_text: with an excluded word that allows bytes that are no UTF-8, and so added tokens."""


class EndlessUnionError(Exception):
    """A parameter's schema refers to itself without a value in between."""


def value_format(schema: Any, root: Any, depth: int = 0) -> Format:
    """Give the format of one parameter. `root`: the tool's parameters, for `$ref`. Raises EndlessUnionError."""
    if depth > MOST_UNIONS:
        raise EndlessUnionError
    found = resolve(schema, root)
    if not isinstance(found, dict):
        return TEXT
    for keyword in ("anyOf", "oneOf"):
        if isinstance(found.get(keyword), list) and found[keyword]:
            return _union([value_format(member, root, depth + 1) for member in found[keyword]])
    values = [found["const"]] if "const" in found else found.get("enum")
    if isinstance(values, list) and values:
        return _union([_literal(value) for value in values])
    types = types_of(found)
    if not types:
        return TEXT
    formats = [_string_format(found)] if "string" in types else []
    others = [name for name in types if name != "string"]
    if others:
        formats.append(json_format({**found, "type": others}, root))
    return _union(formats)


def json_format(schema: dict[str, Any], root: Any) -> Format:
    """Give the format of a value that is written as JSON; references go on meaning the root."""
    document = lengths_as_patterns({**_move_references(schema), "$defs": {"root": _move_references(root)}})
    return {"type": "json_schema", "json_schema": document, "max_whitespace_cnt": MAX_BLANKS}


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
