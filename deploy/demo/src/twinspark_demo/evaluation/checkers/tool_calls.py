"""Tool calls: exactly those that are needed, in any order."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from twinspark_demo.evaluation.reply import Reply


class NeededCall(Protocol):
    """What a needed call tells."""

    @property
    def name(self) -> str:
        """Name of the function."""
        ...

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Typed values by parameter."""
        ...


def is_right(expected: Sequence[NeededCall], reply: Reply) -> bool:
    """Whether the calls equal, as often as they are needed; a call of broken form is wrong."""
    if any(call.broken for call in reply.calls):
        return False
    return sorted(map(_spelled, reply.calls)) == sorted(map(_spelled, expected))


def _spelled(call: NeededCall) -> str:
    """1, "1" and true differ in this form."""
    return json.dumps([call.name, call.arguments], sort_keys=True)
