"""Prompt: one question to the server with what is known of its answer; Wording: one way to put a request."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wording:
    """A sentence with places to fill, in the form of `str.format`."""

    text: str
    held_out: bool = False
    """The training generator has no such sentence."""

    def fill(self, **values: object) -> str:
        """The sentence with its places filled."""
        return self.text.format(**values)


def wordings(usual: Sequence[str], held_out: Sequence[str]) -> tuple[Wording, ...]:
    """All of a kind, the held-out ones spread among the usual ones."""
    every = max(1, len(usual) // max(1, len(held_out)))
    mixed: list[Wording] = []
    waiting = list(held_out)
    for place, text in enumerate(usual, 1):
        mixed.append(Wording(text))
        if waiting and place % every == 0:
            mixed.append(Wording(waiting.pop(0), held_out=True))
    return (*mixed, *(Wording(text, held_out=True) for text in waiting))


@dataclass(frozen=True, slots=True)
class ToolStep:
    """Calls that a reply must make, and what each returns, in the same order: then the conversation goes on."""

    calls: Sequence[Any]
    results: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One question. `messages` is what is sent; with `later_turns` the conversation goes on after each reply."""

    kind: str
    messages: tuple[Message, ...]
    expected: Any
    """What the kind's checker compares with."""
    held_out: bool
    later_turns: tuple[str, ...] = ()
    """Further messages of the user, each sent after the reply to the one before."""
    sends_reasoning: bool = True
    """Whether replies go back with their reasoning when the conversation goes on; most clients drop it."""
    tools: tuple[Mapping[str, Any], ...] = ()
    tool_steps: tuple[ToolStep, ...] = ()
    """Replies before the last one that call, in order."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Further ones of the request's body, such as tool_choice."""
    reply: Mapping[str, Any] | None = None
    """content and tool_calls of the last reply, where exactly one is right; None where several are."""

    def expected_as_json(self) -> Any:
        """`expected` as JSON values."""
        return _as_json(self.expected)


def _as_json(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return [_as_json(item) for item in value] if isinstance(value, list) else value


def ask(text: str) -> tuple[Message, ...]:
    """A conversation that starts with this request."""
    return ({"role": "user", "content": text},)


def content(text: object) -> Mapping[str, Any]:
    """A reply without calls."""
    return {"content": str(text)}
