"""Calls that the model writes inside its reasoning, where none belongs.

If the reply ends there by handing over to the tools, the calls at its very end are the reply's; in every other case
they were only thought about. So they are held back until that is decided.
"""

from twinspark_gateway.tools.parser import CallParser, Parsed, ParsedCall, Piece, StrayTag


class ThoughtCalls:
    """The reasoning of one reply; fed in order."""

    def __init__(self, parser: CallParser) -> None:
        self._parser = parser
        # Whole calls and the blanks between and after them: the end of the reasoning so far.
        self._candidates: list[Parsed] = []

    def take(self, piece: Piece) -> list[Piece]:
        """Take a piece of reasoning; give the pieces that are certainly no call of the reply."""
        return self._sift(self._parser.take(piece))

    def close(self) -> list[Piece]:
        """End the reasoning, after which no call of it counts; give what is held."""
        return [*self._sift(self._parser.end(may_close=False)), *self._release()]

    def hand_over(self) -> tuple[list[Piece], list[ParsedCall]]:
        """End the reasoning and the reply with it, by handing over to the tools; give what is held, and the calls."""
        pieces = self._sift(self._parser.end(may_close=False))
        calls = [parsed for parsed in self._candidates if isinstance(parsed, ParsedCall)]
        return pieces, calls

    def _sift(self, parsed: list[Parsed]) -> list[Piece]:
        pieces: list[Piece] = []
        for item in parsed:
            is_blank = isinstance(item, Piece) and not item.text.strip()
            if isinstance(item, ParsedCall) or (self._candidates and is_blank):
                self._candidates.append(item)
            else:
                pieces += self._release()
                pieces += _pieces_of(item)
        return pieces

    def _release(self) -> list[Piece]:
        held, self._candidates = self._candidates, []
        return [piece for item in held for piece in _pieces_of(item)]


def _pieces_of(item: Parsed) -> tuple[Piece, ...]:
    if isinstance(item, ParsedCall):
        return item.pieces
    return (item.piece,) if isinstance(item, StrayTag) else (item,)
