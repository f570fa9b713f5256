"""Turns the raw text of an argument into a JSON value, by the argument's schema. What does not fit stays text."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from twinspark_gateway.tools.schema_types import ValueTypes, read_types

_INTEGER = re.compile(r"[+-]?[0-9]+(?:\.0+)?")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
# Deeper JSON stays text: it can be neither written nor rendered without running out of stack.
MAX_DEPTH = 200
_NO_VALUE = object()
_FITS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda _value: False,
    "integer": lambda value: type(value) is int,
    "number": lambda value: type(value) in (int, float),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def read_value(text: str, schema: Any, root: Mapping[str, Any]) -> Any:
    """Give the value of an argument whose schema is `schema` (None: not declared) in the parameters `root`."""
    return _read(text, read_types(schema, root))


def _read(text: str, allowed: ValueTypes) -> Any:
    for constant in allowed.constants:
        if _means(text, constant):
            return constant
    types = allowed.types
    if types == ["string"]:
        return text
    parsed = _parse(text)
    if not types:
        return text if allowed.constants or parsed is _NO_VALUE else parsed
    if "string" in types and text != text.strip():
        return text
    for kind in types:
        if parsed is not _NO_VALUE and _FITS[kind](parsed):
            return parsed
    if "string" in types:
        return text
    for kind in types:
        value = _LENIENT[kind](text.strip())
        if value is not _NO_VALUE:
            return value
    return text


def _means(text: str, constant: Any) -> bool:
    """Whether the text is this member of an enumeration: as it stands, as JSON, or as its type is usually written."""
    if isinstance(constant, str):
        return text == constant or _parse(text) == constant
    kind = next(kind for kind, fits in _FITS.items() if fits(constant))
    parsed = _parse(text)
    value = parsed if parsed is not _NO_VALUE and _FITS[kind](parsed) else _LENIENT[kind](text.strip())
    return value is not _NO_VALUE and bool(value == constant)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("out of range")
    return number


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _parse(text: str) -> Any:
    """Parse JSON proper: no NaN, no number that is too large for a float, not too deep."""
    try:
        value = json.loads(text, parse_float=_finite, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return _NO_VALUE
    return value if _is_shallow(value) else _NO_VALUE


def _is_shallow(value: Any) -> bool:
    level, depth = _containers([value]), 0
    while level and depth < MAX_DEPTH:
        level = [inner for item in level for inner in _containers(item.values() if isinstance(item, dict) else item)]
        depth += 1
    return not level


def _containers(values: Iterable[Any]) -> list[Any]:
    return [value for value in values if isinstance(value, dict | list)]


def _unquote(text: str) -> str:
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == '"' else text


def _read_integer(text: str) -> Any:
    text = _unquote(text)
    try:
        return int(text.partition(".")[0]) if _INTEGER.fullmatch(text) else _NO_VALUE
    except ValueError:
        # Python reads no more than some thousand digits.
        return _NO_VALUE


def _read_number(text: str) -> Any:
    text = _unquote(text)
    if not _NUMBER.fullmatch(text):
        return _NO_VALUE
    try:
        return int(text) if text.lstrip("+-").isdigit() else _finite(text)
    except ValueError:
        return _NO_VALUE


def _read_boolean(text: str) -> Any:
    return {"true": True, "false": False}.get(_unquote(text).lower(), _NO_VALUE)


def _read_null(text: str) -> Any:
    return None if text in ("null", "None") else _NO_VALUE


def _read_closed(kind: str, bracket: str) -> Callable[[str], Any]:
    """Give a reader of JSON that may lack its last bracket."""

    def read(text: str) -> Any:
        closed = _parse(text + bracket)
        return closed if closed is not _NO_VALUE and _FITS[kind](closed) else _NO_VALUE

    return read


# What else is taken for a value of the type, where text would be the only other way to read it.
_LENIENT: Mapping[str, Callable[[str], Any]] = {
    "string": lambda _text: _NO_VALUE,
    "integer": _read_integer,
    "number": _read_number,
    "boolean": _read_boolean,
    "null": _read_null,
    "array": _read_closed("array", "]"),
    "object": _read_closed("object", "}"),
}
