"""Splits a chat reply into reasoning and answer by token id, so quoted markup in the answer never splits it."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass


class Part(enum.Enum):
    """Where a token of a chat reply belongs."""

    REASONING = "reasoning"
    ANSWER = "answer"
    # Markup of the reply's structure; it has no text.
    MARKUP = "markup"


@dataclass(frozen=True, slots=True)
class ThinkTokens:
    """Ids of <think> and </think>."""

    opening: int
    closing: int


class ReasoningSplitter:
    """One reply's position: before, inside or after its reasoning. Fed every output token in order.

    Without think tokens everything is answer.
    """

    def __init__(self, tokens: ThinkTokens | None, prompt_token_ids: Sequence[int]) -> None:
        self._tokens = tokens
        # The prompt opens a reasoning at its end, or goes on with one: then text stands after the opening token.
        markup = (token_id for token_id in reversed(prompt_token_ids) if self.is_markup(token_id))
        self._inside = tokens is not None and next(markup, None) == tokens.opening
        self._fresh = True
        self.num_reasoning_tokens = 0

    @property
    def is_inside(self) -> bool:
        """Whether the next token belongs to the reasoning."""
        return self._inside

    def is_markup(self, token_id: int) -> bool:
        """Say whether the token is <think> or </think>."""
        return self._tokens is not None and token_id in (self._tokens.opening, self._tokens.closing)

    def is_closing(self, token_id: int) -> bool:
        """Say whether the token is </think>."""
        return self._tokens is not None and token_id == self._tokens.closing

    def place(self, token_id: int) -> Part:
        """Say where the token belongs, and move on.

        With thinking off, a reply whose very first token is <think> is split all the same. Any other think token
        outside the reasoning is markup and never splits again.
        """
        if self._tokens is None:
            return Part.ANSWER
        fresh, self._fresh = self._fresh, False
        is_markup = self.is_markup(token_id)
        if fresh and token_id == self._tokens.opening:
            self._inside = True
        if not self._inside:
            return Part.MARKUP if is_markup else Part.ANSWER
        self.num_reasoning_tokens += 1
        self._inside = token_id != self._tokens.closing
        return Part.MARKUP if is_markup else Part.REASONING
