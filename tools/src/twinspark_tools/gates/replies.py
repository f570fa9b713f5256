"""A reply as the gates compare it, and where two of them differ."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from twinspark_tools.gates.outcome import Outcome, failed, passed


@dataclass(frozen=True, slots=True)
class Scored:
    """Log probabilities beside one token: its own and those of the most likely ones; None for a prompt's first."""

    token: str
    logprob: float | None
    top: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """All that a reply says of its choice; two replies are equal only bit for bit."""

    token_ids: tuple[int, ...]
    """Output tokens."""
    scores: tuple[Scored, ...]
    """One for each output token; with echo, before them one for each prompt token."""
    finish_reason: str | None


@dataclass(slots=True)
class ReplyParts:
    """Adds up the parts of a streamed choice; a whole one is a single part."""

    token_ids: list[int] = field(default_factory=list)
    scores: list[Scored] = field(default_factory=list)
    finish_reason: str | None = None

    def add(self, choice: Any) -> None:
        """Take a completion choice of the openai client, or of one chunk."""
        self.token_ids += getattr(choice, "token_ids", None) or []
        self.finish_reason = choice.finish_reason or self.finish_reason
        found = choice.logprobs
        if found is not None:
            entries = zip(found.tokens, found.token_logprobs, found.top_logprobs, strict=True)
            self.scores += [Scored(token, own, tuple(sorted((top or {}).items()))) for token, own, top in entries]

    def build(self) -> Reply:
        """The reply."""
        return Reply(tuple(self.token_ids), tuple(self.scores), self.finish_reason)


def find_difference(expected: Reply, found: Reply) -> str | None:
    """The first thing that differs, in words; None if the replies are equal."""
    if expected == found:
        return None
    place = _first_difference(expected.token_ids, found.token_ids)
    if place is not None:
        return f"output token {place} is {_at(found.token_ids, place)}, not {_at(expected.token_ids, place)}"
    place = _first_difference(expected.scores, found.scores)
    if place is not None:
        one, other = _at(expected.scores, place), _at(found.scores, place)
        return f"log probabilities at {place} are {other}, not {one}"
    return f"it ended with {found.finish_reason}, not {expected.finish_reason}"


class Comparison:
    """Compares replies by pairs and becomes the gate's outcome."""

    def __init__(self) -> None:
        self._num_compared = 0
        self._differences: list[str] = []

    def add(self, name: str, expected: Reply, found: Reply) -> None:
        """Compare one pair; name says which, for the person who reads the difference."""
        self._num_compared += 1
        difference = find_difference(expected, found)
        if difference is not None:
            self._differences.append(f"{name}: {difference}")

    def outcome(self, what: str) -> Outcome:
        """Passed if all pairs were equal; what: says what they were. Failed also where nothing was compared."""
        if self._differences:
            return failed(f"{len(self._differences)} of {self._num_compared} differ; {self._differences[0]}")
        return passed(f"{self._num_compared} {what}") if self._num_compared else failed("nothing was compared")


def _first_difference(expected: Sequence[object], found: Sequence[object]) -> int | None:
    for place in range(max(len(expected), len(found))):
        if _at(expected, place) != _at(found, place):
            return place
    return None


def _at(values: Sequence[object], place: int) -> object:
    return values[place] if place < len(values) else "missing"
