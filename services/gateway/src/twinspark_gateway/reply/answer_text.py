"""The visible text of a reply: stop strings are cut from it, and log probabilities travel with their token's text."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from twinspark_gateway.generation import TokenLogprob
from twinspark_gateway.reply.stop_strings import StopStrings


@dataclass(frozen=True, slots=True)
class PlacedLogprob:
    """A token's log probability and where its text starts in the visible text, in characters."""

    token_id: int
    logprob: TokenLogprob
    offset: int


class AnswerText:
    """Visible text of one reply, fed token by token."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = StopStrings(stops)
        self._num_fed = 0
        self._num_released = 0
        self._pending: deque[PlacedLogprob] = deque()

    @property
    def matched_stop(self) -> str | None:
        """The stop string that ended the text."""
        return self._stops.matched

    def take(
        self, text: str, token_id: int, logprob: TokenLogprob | None, *, may_stop: bool
    ) -> tuple[str, list[PlacedLogprob]]:
        """Take the characters that a token completed; give the text that is safe to send and its tokens' entries.

        Without may_stop a stop string that ends in them is ordinary text. A token whose text was cut off by a stop
        string has no entry.
        """
        if logprob is not None:
            self._pending.append(PlacedLogprob(token_id, logprob, self._num_fed))
        self._num_fed += len(text)
        released = self._stops.feed(text, may_match=may_stop)
        self._num_released += len(released)
        entries = []
        while self._pending and self._pending[0].offset < self._num_released:
            entries.append(self._pending.popleft())
        return released, entries

    def flush(self) -> tuple[str, list[PlacedLogprob]]:
        """Give everything that was held: the reply ended, and not by a stop string."""
        released = self._stops.flush()
        self._num_released += len(released)
        entries = list(self._pending)
        self._pending.clear()
        return released, entries
