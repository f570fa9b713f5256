"""Fields of the API that this server does not serve: a value that asks for nothing passes, any other is a 400."""

from collections.abc import Callable, Mapping
from typing import Any

from twinspark_gateway.errors import not_served_yet
from twinspark_gateway.schemas.fields import read_integer, refuse

Neutral = Callable[[Any], bool]


def _one_of(*values: Any) -> Neutral:
    # `is` for booleans: 0 == False in Python, but not in JSON.
    return lambda value: any(type(value) is type(neutral) and value == neutral for neutral in values)


def _number(neutral: float) -> Neutral:
    return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and value == neutral


def _integer(neutral: int) -> Neutral:
    return lambda value: read_integer(value) == neutral


def _is_text_format(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") == "text"


SAMPLING: Mapping[str, Neutral] = {
    "presence_penalty": _number(0),
    "frequency_penalty": _number(0),
    "repetition_penalty": _number(1),
    "logit_bias": _one_of({}, []),
    "min_tokens": _integer(0),
    "structured_outputs": _one_of(),
    "guided_json": _one_of(),
    "guided_regex": _one_of(),
    "guided_choice": _one_of(),
    "guided_grammar": _one_of(),
    "response_format": _is_text_format,
    "draft": _one_of(False),
    "priority": lambda value: _integer(0)(value) or _one_of("foreground")(value),
}
CHAT: Mapping[str, Neutral] = {
    **SAMPLING,
    "tools": _one_of([]),
    "tool_choice": _one_of("none", "auto"),
    "functions": _one_of([]),
    "function_call": _one_of("none", "auto"),
    "modalities": _one_of([], ["text"]),
    "audio": _one_of(),
    "thinking_budget": _integer(0),
    "reasoning_budget": _integer(0),
    "thinking_token_budget": _integer(0),
}
COMPLETION: Mapping[str, Neutral] = {**SAMPLING, "suffix": _one_of("")}
# Checked for their type only: without tools every value means the same.
_BOOLEANS = ("parallel_tool_calls",)


def check_later_fields(body: Mapping[str, Any], table: Mapping[str, Neutral]) -> None:
    """Raise a 400 for the first field whose value asks for something that is not served."""
    for name, is_neutral in table.items():
        value = body.get(name)
        if value is not None and not is_neutral(value):
            raise not_served_yet(name)
    for name in _BOOLEANS if table is CHAT else ():
        value = body.get(name)
        if value is not None and not isinstance(value, bool):
            raise refuse(name, value, "a boolean")
