"""Phrase: sentences with alternatives, written compactly, drawn fast: `{what is|tell me} the capital of <country>`."""

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class _Slot:
    """A place for a value: `<name>`."""

    name: str


@dataclass(frozen=True, slots=True)
class _Choice:
    """One of several sequences, all equally likely: `{one|other|}`."""

    options: tuple["_Sequence", ...]


_Sequence = tuple[str | _Slot | _Choice, ...]


class Phrase:
    """Equally likely texts, each with alternatives in braces (they nest) and slots in angle brackets.

    Values of slots are put in as they are; braces and brackets in them mean nothing. Raises ValueError for text that
    does not parse.
    """

    __slots__ = ("_choice",)

    def __init__(self, *texts: str) -> None:
        self._choice = _Choice(tuple(_parse(text) for text in texts))

    def write(self, rng: Random, **slots: str) -> str:
        """A drawn sentence; KeyError if it has a slot without a value."""
        written: list[str] = []
        _expand(self._choice, rng, slots, written)
        return "".join(written)


def _expand(choice: _Choice, rng: Random, slots: dict[str, str], written: list[str]) -> None:
    options = choice.options
    for part in options[int(rng.random() * len(options))]:
        if isinstance(part, str):
            written.append(part)
        elif isinstance(part, _Slot):
            written.append(slots[part.name])
        else:
            _expand(part, rng, slots, written)


def _parse(text: str) -> _Sequence:
    options, end = _parse_options(text + "}", 0)
    if end != len(text) + 1 or len(options) != 1:
        raise ValueError(f"braces or bars without a partner: {text}")
    return options[0]


def _parse_options(text: str, start: int) -> tuple[tuple[_Sequence, ...], int]:
    """The alternatives from `start` up to the closing brace that belongs to them, and the place behind it."""
    options: list[_Sequence] = []
    parts: list[str | _Slot | _Choice] = []
    at = plain = start
    while at < len(text):
        mark = text[at]
        if mark not in "{|}<":
            at += 1
            continue
        if at > plain:
            parts.append(text[plain:at])
        at += 1
        if mark == "{":
            inner, at = _parse_options(text, at)
            parts.append(_Choice(inner))
        elif mark == "<":
            closing = text.index(">", at)
            parts.append(_Slot(text[at:closing]))
            at = closing + 1
        else:
            options.append(tuple(parts))
            parts = []
            if mark == "}":
                return tuple(options), at
        plain = at
    raise ValueError(f"a brace is not closed: {text}")
