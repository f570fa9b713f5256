"""Reads the fields of a request body with the number rules of the API. null always means "not given".

Integers of 64 bits may come as integral floats or strings (20.0, "20"); booleans are never numbers; NaN and infinities
never are, in strings either (the body's reader refuses the others).
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from twinspark_gateway.errors import ApiError, invalid, not_served_yet

_INTEGER = re.compile(r"[+-]?\d{1,40}")
_LEAST_INTEGER, _LARGEST_INTEGER = -(1 << 63), (1 << 64) - 1
_SHOWN_CHARACTERS = 60
_ENCODER = json.JSONEncoder(ensure_ascii=False)


def show(value: Any) -> str:
    """Describe a refused value as JSON, shortened; only what is shown is encoded, however large the value is."""
    if isinstance(value, float) and not math.isfinite(value):
        return "a number that is too large"
    text = ""
    for part in _ENCODER.iterencode(value[: _SHOWN_CHARACTERS + 1] if isinstance(value, str) else value):
        text += part[: _SHOWN_CHARACTERS + 1]
        if len(text) > _SHOWN_CHARACTERS:
            return f"{text[:_SHOWN_CHARACTERS]}..."
    return text


def read_integer(value: Any) -> int | None:
    """Give the integer that a JSON value stands for, or None if it stands for none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        return int(value)
    if isinstance(value, str) and _INTEGER.fullmatch(value.strip()):
        return int(value)
    return None


def refuse(name: str, value: Any, expected: str) -> ApiError:
    """Build the 400 that says what a field must be and what it was."""
    return invalid(name, f"'{name}' must be {expected} (got {show(value)}).", code="invalid_value")


def refuse_at(where: str, why: str) -> ApiError:
    """Build the 400 about a place inside a field: `param` names the field, the text the place."""
    return invalid(_field_of(where), f"'{where}' {why}.", code="invalid_value")


def string_at(holder: Mapping[str, Any], key: str, where: str) -> str:
    """Read the string that the object at `where` must have under `key`; raises refuse_at's 400."""
    value = holder.get(key)
    if not isinstance(value, str):
        raise refuse_at(f"{where}.{key}", f"must be a string (got {show(value)})")
    return value


def name_at(holder: Mapping[str, Any], where: str) -> str:
    """Read the string under `name`, which must not be empty; raises refuse_at's 400."""
    name = string_at(holder, "name", where)
    if not name:
        raise refuse_at(f"{where}.name", "must be a non-empty string")
    return name


def not_served_at(where: str, hint: str = "") -> ApiError:
    """Build the 400 for something inside a field that this server cannot honour; see refuse_at."""
    error = not_served_yet(where, hint)
    error.param = _field_of(where)
    return error


def _field_of(where: str) -> str:
    return re.split(r"[.\[]", where)[0]


class Fields:
    """An object of one request: its body, or one inside it. Every reader raises a 400 that names the field."""

    def __init__(self, body: Mapping[str, Any], path: str = "") -> None:
        self._body = body
        self._prefix = f"{path}." if path else ""

    def path(self, name: str) -> str:
        """Give the name that refusals call a field by: stream_options.include_usage."""
        return self._prefix + name

    def inner(self, name: str) -> "Fields":
        """Read an object; an empty one if it is not given."""
        return Fields(self.mapping(name), self.path(name))

    def get(self, name: str) -> Any:
        """Give the raw value; None if it is missing or null."""
        return self._body.get(name)

    def boolean(self, name: str, default: bool) -> bool:
        """Read true or false."""
        value = self._body.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise refuse(self.path(name), value, "a boolean")
        return value

    def text(self, name: str) -> str | None:
        """Read a string."""
        value = self._body.get(name)
        if value is not None and not isinstance(value, str):
            raise refuse(self.path(name), value, "a string")
        return value

    def integer(self, name: str, low: int | None = None, high: int | None = None) -> int | None:
        """Read an integer in [low, high]."""
        value = self._body.get(name)
        if value is None:
            return None
        number = read_integer(value)
        if number is None:
            raise refuse(self.path(name), value, "an integer")
        if not _LEAST_INTEGER <= number <= _LARGEST_INTEGER:
            raise refuse(self.path(name), value, "an integer of at most 64 bits")
        if (low is not None and number < low) or (high is not None and number > high):
            raise refuse(self.path(name), value, _range_text("an integer", low, high))
        return number

    def number(self, name: str, low: float, high: float | None = None, *, above_low: bool = False) -> float | None:
        """Read a number in [low, high], or in (low, high] with above_low."""
        value = self._body.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise refuse(self.path(name), value, "a number")
        try:
            number = float(value)
        except OverflowError:
            raise refuse(self.path(name), value, "a finite number") from None
        if not math.isfinite(number):
            raise refuse(self.path(name), value, "a finite number")
        if number < low or (above_low and number == low) or (high is not None and number > high):
            bound = f"above {low:g}" if above_low else f"at least {low:g}"
            raise refuse(
                self.path(name), value, f"a number {bound}" + (f" and at most {high:g}" if high is not None else "")
            )
        return number

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Read an object; an empty one if it is not given."""
        value = self._body.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise refuse(self.path(name), value, "an object")
        return value

    def token_ids(self, name: str, vocabulary_size: int) -> tuple[int, ...]:
        """Read a list of token ids; empty if it is not given."""
        value = self._body.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise refuse(self.path(name), value, "a list of token ids")
        return check_token_ids(self.path(name), value, vocabulary_size)


def check_token_ids(name: str, values: list[Any], vocabulary_size: int | None) -> tuple[int, ...]:
    """Check that every entry is a token id of the vocabulary (any id from 0 on where its size is not known)."""
    for value in values:
        if type(value) is not int:
            raise refuse(name, value, "a list of token ids, each an integer")
        if value < 0 or (vocabulary_size is not None and value >= vocabulary_size):
            limit = f"0 to {vocabulary_size - 1}" if vocabulary_size is not None else "0 or more"
            raise refuse(name, value, f"a list of token ids of the vocabulary ({limit})")
    return tuple(values)


def _range_text(kind: str, low: int | None, high: int | None) -> str:
    if low is None:
        return f"{kind}, at most {high}"
    return f"{kind}, at least {low}" + (f" and at most {high}" if high is not None else "")
