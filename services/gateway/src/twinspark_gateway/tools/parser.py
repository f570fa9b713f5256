"""Finds the calls in a text that comes token by token. A pure state machine: what it gives does not depend on how the
text was cut into tokens, and nothing that it gave is taken back.

A block is held until it is closed or can be no call any more, so a call is given whole, and a block that is none is
given as the text that it was.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from twinspark_gateway.generation import TokenLogprob
from twinspark_gateway.tools.block import CallBlock, Step
from twinspark_gateway.tools.offer import ToolOffer
from twinspark_gateway.tools.tags import ToolTag


@dataclass(frozen=True, slots=True)
class Piece:
    """The text that one token completed, and what else travels with it."""

    token_id: int
    text: str
    logprob: TokenLogprob | None = None
    # False: a stop string that ends in it is ordinary text.
    may_stop: bool = True


@dataclass(frozen=True, slots=True)
class StrayTag:
    """A tag outside of every block."""

    piece: Piece


@dataclass(frozen=True, slots=True)
class ParsedCall:
    """A call of an offered tool."""

    name: str
    # A JSON object.
    arguments: str
    # What it was read from.
    pieces: tuple[Piece, ...]


Parsed = Piece | StrayTag | ParsedCall


class CallParser:
    """The parser of one run of text; fed in order."""

    def __init__(self, tags: Mapping[int, ToolTag], offer: ToolOffer) -> None:
        self._tags = tags
        self._offer = offer
        self._block: CallBlock | None = None
        self._held: list[Piece] = []

    @property
    def is_inside(self) -> bool:
        """Whether a block is open."""
        return self._block is not None

    def take(self, piece: Piece) -> list[Parsed]:
        """Take a piece; give what is certain now."""
        tag = self._tags.get(piece.token_id)
        if self._block is None:
            if tag is not ToolTag.CALL_OPEN:
                return [piece if tag is None else StrayTag(piece)]
            self._open(piece)
            return []
        step = self._block.take(tag, piece.text)
        if step is Step.REOPENED:
            held = self._release()
            self._open(piece)
            return held
        self._held.append(piece)
        if step is Step.CLOSED:
            return self._close(self._block.try_build())
        if self._block.may_be_call:
            return []
        released, self._held = self._held, []
        return [*released]

    def end(self, *, may_close: bool) -> list[Parsed]:
        """End the text. With may_close a call that lacks its closing tag only is a call."""
        if self._block is None:
            return []
        return self._close(self._block.try_close() if may_close else None)

    def _open(self, piece: Piece) -> None:
        self._block, self._held = CallBlock(self._offer), [piece]

    def _release(self) -> list[Parsed]:
        held, self._block, self._held = self._held, None, []
        return [*held]

    def _close(self, call: tuple[str, str] | None) -> list[Parsed]:
        held = self._held
        released = self._release()
        return released if call is None else [ParsedCall(*call, tuple(held))]
