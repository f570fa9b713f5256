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
    """Visible text of one reply, fed token by token.

    With may_have_calls, blanks are held: a call drops those before it, and a reply with calls does not end in blanks.
    """

    def __init__(self, stops: Sequence[str], *, may_have_calls: bool = False) -> None:
        self._stop_texts = stops
        self._stops = StopStrings(stops)
        self._may_have_calls = may_have_calls
        self._has_calls = False
        # Blanks that are not sent yet.
        self._blanks = ""
        self._num_fed = 0
        self._num_released = 0
        self._pending: deque[PlacedLogprob] = deque()

    @property
    def matched_stop(self) -> str | None:
        """The stop string that ended the text."""
        return self._stops.matched

    @property
    def is_empty(self) -> bool:
        """Whether no text was given so far."""
        return not self._num_released

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
        fed = self._stops.feed(text, may_match=may_stop)
        return self._release(fed, is_last=self._stops.matched is not None)

    def break_off(self) -> tuple[str, list[PlacedLogprob]]:
        """Give what was held: a call stands here. A stop string does not match across it."""
        self._has_calls = True
        released = self._release(self._stops.flush(), is_last=True)
        self._drop()
        self._stops = StopStrings(self._stop_texts)
        return released

    def flush(self) -> tuple[str, list[PlacedLogprob]]:
        """Give everything that was held: the reply ended, and not by a stop string."""
        released, entries = self._release(self._stops.flush(), is_last=True)
        if not self._has_calls:
            # Also tokens without text.
            entries += self._pending
        self._drop()
        return released, entries

    def _release(self, text: str, *, is_last: bool) -> tuple[str, list[PlacedLogprob]]:
        """Give held blanks and text, but for blanks at the end that have to wait, or that a call makes layout."""
        whole = self._blanks + text
        is_whole = is_last and not self._has_calls
        released = whole if is_whole or not self._may_have_calls else whole.rstrip()
        self._blanks = whole[len(released) :]
        self._num_released += len(released)
        entries = []
        while self._pending and self._pending[0].offset < self._num_released:
            entries.append(self._pending.popleft())
        return released, entries

    def _drop(self) -> None:
        self._blanks = ""
        self._pending.clear()
        self._num_fed = self._num_released
