"""Fields of the API that this server does not serve: a value that asks for nothing passes, any other is a 400."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from twinspark_gateway.errors import not_served_yet
from twinspark_gateway.schemas.fields import read_integer, refuse

Test = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class LaterField:
    """A field that is not served: what its values must be, and which of them ask for nothing."""

    expected: str
    fits: Test
    is_neutral: Test
    # What the refusal adds.
    hint: str = ""


def _of_type(expected: str, kind: type) -> Callable[..., LaterField]:
    """Give a maker of fields of one JSON type; `type` itself, as 0 == False in Python, but not in JSON."""

    def make(*neutral: Any, hint: str = "") -> LaterField:
        return LaterField(expected, lambda value: type(value) is kind, lambda value: value in neutral, hint)

    return make


_TEXT = _of_type("a string", str)
_LIST, _OBJECT = _of_type("a list", list), _of_type("an object", dict)
_COUNT = LaterField("an integer", lambda value: read_integer(value) is not None, lambda value: read_integer(value) == 0)
CHAT: Mapping[str, LaterField] = {
    "modalities": _LIST([], ["text"]),
    "audio": _OBJECT(),
}
RESPONSES: Mapping[str, LaterField] = {
    "background": _of_type("a boolean", bool)(False),
    "include": _LIST([]),
    "conversation": LaterField("an id or an object", lambda value: isinstance(value, str | dict), lambda _value: False),
    "prompt": _OBJECT(),
    "truncation": _TEXT("disabled"),
    "top_logprobs": _COUNT,
}
COMPLETION: Mapping[str, LaterField] = {"suffix": _TEXT("")}


def check_later_fields(body: Mapping[str, Any], table: Mapping[str, LaterField]) -> None:
    """Raise a 400 for the first field whose value has a wrong type or asks for something that is not served."""
    for name, field in table.items():
        value = body.get(name)
        if value is None:
            continue
        if not field.fits(value):
            raise refuse(name, value, field.expected)
        if not field.is_neutral(value):
            raise not_served_yet(name, field.hint)
