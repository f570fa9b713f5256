"""Lengths of strings as patterns.

xgrammar lets a string with a length hold raw control characters, which is no JSON; one with a pattern it does not.
"""

from collections.abc import Mapping
from typing import Any

from twinspark_grammar.schema.keywords import FORMATS

VALUES = frozenset(("const", "enum", "default", "examples"))
"""Hold values, not schemas."""
BY_NAME = frozenset(("properties", "patternProperties", "$defs", "definitions"))
"""Hold schemas by names that may look like keywords."""
LENGTHS = ("minLength", "maxLength")


def lengths_as_patterns(schema: Any) -> Any:
    """Copy a schema; where only its length constrains a string, a pattern does."""
    if isinstance(schema, list):
        return [lengths_as_patterns(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    copied = {name: _copy(name, value) for name, value in schema.items()}
    if _is_by_length_only(copied):
        least, most = copied.pop("minLength", 0), copied.pop("maxLength", "")
        copied["pattern"] = rf"^[\s\S]{{{least},{most}}}$"
    return copied


def _copy(name: str, value: Any) -> Any:
    if name in VALUES:
        return value
    if name in BY_NAME and isinstance(value, dict):
        return {key: lengths_as_patterns(entry) for key, entry in value.items()}
    return lengths_as_patterns(value)


def _is_by_length_only(schema: Mapping[str, Any]) -> bool:
    lengths = [schema[name] for name in LENGTHS if name in schema]
    are_plain = all(type(length) is int and length >= 0 for length in lengths)
    is_empty = len(lengths) == len(LENGTHS) and are_plain and lengths[0] > lengths[1]
    is_decided = "pattern" in schema or schema.get("format") in FORMATS
    return bool(lengths) and are_plain and not is_empty and not is_decided
