"""What a JSON schema must not hold: values of the wrong shape, and strings that masks would let through as no JSON."""

import re
from typing import Any

from xgrammar import Grammar

from twinspark_grammar.schema.enforcement import deciding_keyword, types_of, walk
from twinspark_grammar.schema.keywords import FORMATS

UNIONS = ("anyOf", "oneOf", "allOf")
_SAFE = re.compile(r'Regex\("(?:[^"\\]|\\.)*", json_string=true\)')
"""An expression that xgrammar holds to the characters that stand in a JSON string as they are."""
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|.)")
_CLASS = re.compile(r"\[(?:[^\]\\]|\\.)*\]")
_TOKEN = re.compile(r"\\.|.", re.DOTALL)
_NUL = re.compile(r"\\(?:0|x00|u0000|u\{0+\})|\0")
"""xgrammar loses it in a literal."""
_UNSAFE = (*map(chr, range(0x20)), '"', "\\")
"""Characters that need an escape in a JSON string."""


class SchemaError(Exception):
    """A keyword of a JSON schema that cannot be compiled; the message names it and its place."""

    def __init__(self, keyword: str, path: str, problem: str) -> None:
        super().__init__(f"{keyword} at {path or 'the root'} {problem}")


def check_shapes(root: Any, path: str) -> None:
    """Refuse empty unions and keywords of a wrong type. Raises SchemaError."""
    for schema, place in walk(root, path, root, path):
        for keyword in ("format", "pattern"):
            if not isinstance(schema.get(keyword, ""), str):
                raise SchemaError(keyword, place, "must be a string")
        required = schema.get("required", [])
        if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
            raise SchemaError("required", place, "must be an array of strings")
        for keyword in (*UNIONS, "type"):
            if schema.get(keyword) == []:
                raise SchemaError(keyword, place, "must not be empty")


def settle_patterns(schema: Any, path: str, root: Any, root_path: str) -> None:
    """Write patterns of strings in JSON as xgrammar holds them to JSON, in place; refuse the others.

    `root` is what references in the schema mean; each path is a JSON pointer in the source. Raises SchemaError.
    """
    for part, place in list(walk(schema, path, root, root_path)):
        if deciding_keyword(part) is not None:
            continue
        types = types_of(part)
        is_string = "string" in types or place.endswith("/propertyNames")
        if is_string and "pattern" in part and part.get("format") not in FORMATS:
            part["pattern"] = _settle(part["pattern"], "pattern", place)
        named = part.get("patternProperties")
        if "object" in types and isinstance(named, dict):
            part["patternProperties"] = {
                _settle(pattern, "patternProperties", place): value for pattern, value in named.items()
            }


def _settle(pattern: str, keyword: str, path: str) -> str:
    """Spell a pattern in ASCII: of one with other letters xgrammar would let through raw quotes."""
    spelled = _TOKEN.sub(_spell, pattern)
    if _needs_escapes(spelled):
        raise SchemaError(keyword, path, "cannot be held to texts that stand in a JSON string without escapes")
    return spelled


def _spell(token: re.Match[str]) -> str:
    letter = token[0][-1]
    return token[0] if letter.isascii() else f"\\u{{{ord(letter):x}}}"


def _needs_escapes(pattern: str) -> bool:
    """Say whether xgrammar writes some text of the pattern as it is, though that is no JSON string so.

    It leaves out what needs an escape, but not where nothing else is left, or where there are too many states.
    """
    grammar = str(Grammar.from_json_schema({"type": "string", "pattern": pattern}))
    # Rules of the pattern; `root` itself holds the string's quotes, the others are of JSON in general.
    rules = [_SAFE.sub("", line) for line in grammar.splitlines() if line.startswith("root_")]
    literals = [literal for rule in rules for literal in _LITERAL.findall(rule)]
    classes = [found for rule in rules for found in _CLASS.findall(_LITERAL.sub("", rule))]
    if literals and _NUL.search(pattern):
        return True
    escapes = (escape for literal in literals for escape in _ESCAPE.finditer(literal))
    return any(map(_is_unsafe, escapes)) or any(re.match(found, char) for found in classes for char in _UNSAFE)


def _is_unsafe(escape: re.Match[str]) -> bool:
    digits = escape[1] or escape[2] or escape[3]
    return chr(int(digits, 16)) in _UNSAFE if digits else escape[0] != r"\'"
