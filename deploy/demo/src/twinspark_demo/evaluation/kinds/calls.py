"""Calls of functions: drawn arguments, offered tools, returned objects."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinspark_demo.evaluation.words import CONTENT, Maker, code, distinct, name, noun, plain_noun, plain_word
from twinspark_demo.knowledge import FUNCTIONS, Function

BY_NAME: Mapping[str, Function] = {function.name: function for function in FUNCTIONS}
_SIMILAR = ({"set_alarm", "set_timer"}, {"search_files", "read_file"}, {"send_message", "create_note"})
"""A request for one may fairly be taken for the other, so it is not offered in its place."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that is needed: the function's name, and its arguments in the order of its schema."""

    name: str
    arguments: Mapping[str, str | int]

    def as_message_part(self) -> dict[str, Any]:
        """The call in the form of the chat API, with arguments as a mapping."""
        return {"type": "function", "function": {"name": self.name, "arguments": dict(self.arguments)}}


_LANGUAGES = ("French", "German", "Spanish", "Italian", "Greek", "Polish", "Swedish", "Danish", "Dutch", "Turkish")
_CURRENCIES = ("euros", "pounds", "yen", "francs", "pesos", "rupees", "kroner")
_DEVICES = ("lamp", "heater", "radio", "television", "fan", "oven", "printer", "heating", "light", "kettle")
_STRINGS: Mapping[str, Maker] = {
    "city": name,
    "symbol": lambda rng: code(rng, 3, 5).upper(),
    "country": name,
    "word": lambda rng: plain_noun(rng) if rng.random() < 1 / 2 else rng.choice(CONTENT),
    "language": lambda rng: rng.choice(_LANGUAGES),
    "person": name,
    "text": lambda rng: " ".join(plain_word(rng) for _ in range(rng.randint(2, 6))),
    "title": lambda rng: " ".join(plain_noun(rng).capitalize() for _ in range(rng.randint(1, 3))),
    "currency": lambda rng: rng.choice(_CURRENCIES),
    "name": plain_noun,
    "path": lambda rng: f"{plain_noun(rng)}/{plain_noun(rng)}.{rng.choice(('txt', 'md', 'py', 'csv'))}",
    "restaurant": name,
    "origin": name,
    "target": name,
    "device": lambda rng: rng.choice((rng.choice(_DEVICES), f"{noun(rng)} {rng.choice(_DEVICES)}")),
}
_RANGES: Mapping[str, tuple[int, int]] = {
    "hour": (0, 23),
    "minute": (0, 59),
    "minutes": (2, 90),
    "amount": (2, 999),
    "people": (2, 12),
}


def draw_call(rng: random.Random, function: Function) -> Call:
    """Values for all parameters of a function."""
    arguments: dict[str, str | int] = {}
    for parameter, kind in function.parameters.items():
        drawn: str | int = rng.randint(*_RANGES[parameter]) if kind == "integer" else _STRINGS[parameter](rng)
        while drawn in arguments.values() and kind == "string":
            drawn = _STRINGS[parameter](rng)
        arguments[parameter] = drawn
    return Call(function.name, arguments)


def draw_tools(
    rng: random.Random, needed: Sequence[str], *, without: str | None = None
) -> tuple[Mapping[str, Any], ...]:
    """2 to 4 functions in any order, with those that are needed, without one and what is similar to it."""
    banned = {without, *needed} | {other for pair in _SIMILAR if without in pair for other in pair}
    others = [function for function in FUNCTIONS if function.name not in banned]
    unique = list(dict.fromkeys(needed))
    count = max(len(unique), rng.randint(2, 4))
    offered = [BY_NAME[name] for name in unique] + rng.sample(others, count - len(unique))
    rng.shuffle(offered)
    return tuple(function.as_tool() for function in offered)


def draw_result(rng: random.Random, function: Function) -> dict[str, str | int]:
    """The object that a function returns."""
    values: Mapping[str, Callable[[], str | int]] = {
        "sky": lambda: rng.choice(("sunny", "cloudy", "rainy", "windy", "foggy", "clear")),
        "degrees": lambda: rng.randint(-9, 39),
        "time": lambda: f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}",
        "price": lambda: rng.randint(2, 999),
        "people": lambda: rng.randint(1, 999) * 1000,
        "word": lambda: plain_noun(rng),
        "status": lambda: rng.choice(("done", "ok", "sent", "saved", "ready", "failed")),
        "value": lambda: rng.randint(2, 9999),
        "files": lambda: ", ".join(distinct(rng, _STRINGS["path"], rng.randint(1, 3))),
        "text": lambda: _STRINGS["text"](rng),
        "km": lambda: rng.randint(12, 9999),
    }
    return {key: values[key]() for key in function.result}
