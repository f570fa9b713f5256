"""The masks of one stream: state that advances by committed tokens, and a walk along drafts that is taken back."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from xgrammar import CompiledGrammar, GrammarMatcher

from twinspark_grammar.errors import MasksTooSlowError, NoTokenAllowedError, TokenNotAllowedError
from twinspark_grammar.vocabulary import Vocabulary

WORD_BITS = 32
SUSTAINED_SECONDS = 0.05
"""Processor time that each committed token may take in the long run, with the rows behind it."""

Words = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class MaskParams:
    """What a stream opens with. `starts_after`: the id after which the grammar constrains; None: at once."""

    vocabulary_size: int
    stop_token_ids: tuple[int, ...]
    starts_after: int | None


@dataclass(frozen=True, slots=True)
class WindowMasks:
    """Row 0 follows the committed tokens, row i the draft i - 1 as well. `masks`: (rows, words)."""

    num_allowed_drafts: int
    masks: Words
    complete: tuple[bool, ...]


class RequestMasks:
    """One stream's state. One window at a time, from any thread."""

    def __init__(
        self,
        grammar: CompiledGrammar,
        vocabulary: Vocabulary,
        params: MaskParams,
        window_seconds: float,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        """The clock shows processor time: that a busy machine makes a window wait says nothing of its grammar."""
        self._matcher = GrammarMatcher(grammar, override_stop_tokens=list(params.stop_token_ids))
        self._num_words = _count_words(params.vocabulary_size)
        self._num_grammar_words = _count_words(len(vocabulary.token_bytes))
        self._stop_token_ids = frozenset(params.stop_token_ids)
        self._starts_after = params.starts_after
        self._is_waiting = params.starts_after is not None
        self._token_ids = vocabulary.token_ids
        self._token_mask = self._pack(vocabulary.token_ids)
        self._waiting_mask = self._pack(vocabulary.token_ids - self._stop_token_ids)
        self._ended_mask = self._pack(self._stop_token_ids)
        self._window_seconds = window_seconds
        self._clock = clock
        # Left to the stream beside SUSTAINED_SECONDS a token.
        self._left_seconds = window_seconds
        # Processor time of one token and its row under the grammar, of those so far.
        self._slowest_seconds = math.inf

    def expect_seconds(self, num_rows: int) -> float:
        """Processor time of a window of so many rows, by the slowest row so far; infinity before the first."""
        return num_rows * self._slowest_seconds

    def advance(self, committed: Sequence[int], drafts: Sequence[int]) -> WindowMasks:
        """Commit tokens and give the masks of the next window, of which later state keeps no trace.

        Raises TokenNotAllowedError, NoTokenAllowedError and MasksTooSlowError; the stream is of no use after any.
        """
        started = self._clock()
        deadline = started + self._left_seconds + SUSTAINED_SECONDS * len(committed)
        for index, token_id in enumerate(committed):
            if not self._accept(token_id):
                raise TokenNotAllowedError(index, token_id)
            self._check_time(deadline)
        was_waiting = self._is_waiting
        masks = np.zeros((len(drafts) + 1, self._num_words), np.int32)
        complete = [self._fill(masks[0])]
        if not masks[0].any():
            raise NoTokenAllowedError
        num_taken = 0
        try:
            for row, token_id in enumerate(drafts, start=1):
                needs_matcher = not self._is_waiting
                if self._matcher.is_terminated() or not self._accept(token_id):
                    break
                num_taken += needs_matcher
                complete.append(self._fill(masks[row]))
                if not masks[row].any():  # a dead end: the draft that leads there is not allowed
                    complete.pop()
                    break
                self._check_time(deadline)
        finally:
            if num_taken:
                self._matcher.rollback(num_taken)
            self._is_waiting = was_waiting
        self._check_time(deadline)
        now = self._clock()
        self._left_seconds = min(self._window_seconds, deadline - now)
        if not was_waiting:
            seconds = (now - started) / (len(committed) + len(complete))
            is_first = self._slowest_seconds == math.inf
            self._slowest_seconds = seconds if is_first else max(self._slowest_seconds, seconds)
        return WindowMasks(len(complete) - 1, masks[: len(complete)], tuple(complete))

    def _check_time(self, deadline: float) -> None:
        if self._clock() > deadline:
            raise MasksTooSlowError(self._window_seconds)

    def _accept(self, token_id: int) -> bool:
        """Go on by one token; False where it is not allowed."""
        if self._is_waiting:
            if not self._is_set(self._waiting_mask, token_id):
                return False
            self._is_waiting = token_id != self._starts_after
            return True
        if token_id not in self._token_ids or self._matcher.is_terminated():
            return False
        accepted: bool = self._matcher.accept_token(token_id)
        return accepted

    def _fill(self, row: Words) -> bool:
        """Write the mask of the current state; say whether the output is complete there."""
        if self._is_waiting:
            row[:] = self._waiting_mask
            return False
        if self._matcher.is_terminated():
            row[:] = self._ended_mask
            return True
        words = np.zeros((1, self._num_grammar_words), np.int32)
        self._matcher.fill_next_token_bitmask(words)
        # xgrammar leaves the bits behind its last token as they come out; rows of the model without a token are there.
        row[: self._num_grammar_words] = words[0] & self._token_mask[: self._num_grammar_words]
        completed: bool = self._matcher.is_completed()
        return completed

    def _pack(self, token_ids: frozenset[int]) -> Words:
        bits = np.zeros(self._num_words * WORD_BITS, np.uint8)
        bits[list(token_ids)] = 1
        return np.packbits(bits, bitorder="little").view("<i4")

    def _is_set(self, mask: Words, token_id: int) -> bool:
        word, bit = divmod(token_id, WORD_BITS)
        return word < len(mask) and bool(int(mask[word]) >> bit & 1)


def _count_words(num_ids: int) -> int:
    return (num_ids + WORD_BITS - 1) // WORD_BITS
