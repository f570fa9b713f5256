"""Reading a source that is JSON, with a limit on its depth."""

import json
import math
from typing import Any, NoReturn


class JsonSourceError(Exception):
    """The text is no JSON; the message says where."""


class TooDeepError(Exception):
    """Arrays and objects are nested deeper than the limit."""


def read_json(text: str, max_depth: int) -> Any:
    """Give the value. Raises JsonSourceError and TooDeepError."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant, parse_int=_read_int, parse_float=_read_float)
    except RecursionError:
        raise TooDeepError from None
    except ValueError as error:
        raise JsonSourceError(f"not JSON: {error}") from None
    if depth_of(value) > max_depth:
        raise TooDeepError
    return value


def depth_of(value: Any) -> int:
    """Count the levels of arrays and objects; a scalar has none."""
    depth, level = 0, [value]
    while level := [entry for entry in level if isinstance(entry, dict | list)]:
        depth += 1
        level = [child for entry in level for child in (entry.values() if isinstance(entry, dict) else entry)]
    return depth


def _read_int(digits: str) -> int:
    _read_float(digits)
    return int(digits)


def _read_float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError("a number is too large")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
