"""What a request asks of its reply's form, before it is a compiled grammar."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinspark_gateway.generation import GrammarKind


@dataclass(frozen=True, slots=True)
class Constraint:
    """What the answer must be, from its first token to its last."""

    kind: GrammarKind
    # As GrammarKind's members of the grammar service's contract say.
    source: str
    # The place in the request's body that asks for it.
    where: str
    # Whether a keyword of a schema that masks do not enforce is refused.
    strict: bool = False
    # The schema that the answer must fit as JSON; None where there is none.
    schema: Mapping[str, Any] | None = None
    # Of tool calls: where each of the source's tools stands in the request.
    tool_positions: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """A part of a schema that masks do not, or not wholly, enforce."""

    keyword: str
    # A JSON pointer into the source.
    path: str


@dataclass(frozen=True, slots=True)
class Compiled:
    """What the grammar service made of a constraint."""

    handle: str
    gaps: Sequence[Gap]
