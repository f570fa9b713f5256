"""What a rank's runner asks of whoever gives token masks, and the source of a rank that has no grammar service."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from twinspark_engine.request import ConstraintFailure, Grammar

Mask = memoryview
"""The ids that may follow, over the whole vocabulary: bit i of little-endian 32-bit word w is id 32 * w + i."""


Masks = Sequence[Mask] | ConstraintFailure
"""Those of one window, one a row: row 0 follows the committed tokens; or why there are none."""


class MaskStream(Protocol):
    """The masks of one request, in order. Used by the step thread only."""

    def post(self, committed: Sequence[int]) -> None:
        """Ask for the masks of the next window, which follows the tokens committed since the last one. Does not block.

        MUST NOT be called again before wait has given the masks of the window before.
        """
        ...

    def wait(self, seconds: float) -> Masks:
        """The masks of the window that was posted.

        Blocks at most for that time; after a failure the stream is of no use.
        """
        ...

    def close(self) -> None:
        """Forget the request. Does not block; whatever is under way is given up."""
        ...


class MaskSource(Protocol):
    """Opens streams. Masks are a function of the grammar and of the committed tokens, so that ranks agree."""

    def open(self, request_id: str, grammar: Grammar, end_token_ids: Sequence[int]) -> MaskStream:
        """A stream for a request whose output these ids end. Does not block: failures come from wait."""
        ...


class NoMasks:
    """The source of a rank that has no grammar service: every stream is lost from the first."""

    def open(self, request_id: str, grammar: Grammar, end_token_ids: Sequence[int]) -> MaskStream:
        """See MaskSource.open."""
        return _LostStream()


class _LostStream:
    def post(self, committed: Sequence[int]) -> None:
        pass

    def wait(self, seconds: float) -> ConstraintFailure:
        return ConstraintFailure.LOST

    def close(self) -> None:
        pass


@dataclass(frozen=True, slots=True)
class MaskAccess:
    """How a rank gets its masks."""

    source: MaskSource
    timeout_seconds: float = 0.0
    """Given to the masks of one draw, of all its rows together, once the logits are there."""


NO_MASKS = MaskAccess(NoMasks())
