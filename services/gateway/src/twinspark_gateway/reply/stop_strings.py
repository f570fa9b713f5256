"""Finds stop strings in text that arrives token by token and holds back only what may still become one.

Each string is followed by the Knuth-Morris-Pratt automaton, whose state is the length of the longest suffix of the
text that is a prefix of the string: exactly what has to be held.
"""

from collections.abc import Sequence
from dataclasses import dataclass


def _failure_table(pattern: str) -> list[int]:
    """Length of the longest proper border of every prefix of the pattern."""
    table = [0] * len(pattern)
    length = 0
    for i in range(1, len(pattern)):
        while length and pattern[i] != pattern[length]:
            length = table[length - 1]
        if pattern[i] == pattern[length]:
            length += 1
        table[i] = length
    return table


@dataclass(slots=True)
class _Automaton:
    pattern: str
    table: list[int]
    matched: int = 0

    def advance(self, char: str) -> bool:
        """Take one character; True when the pattern ends here."""
        while self.matched and char != self.pattern[self.matched]:
            self.matched = self.table[self.matched - 1]
        if char == self.pattern[self.matched]:
            self.matched += 1
        return self.matched == len(self.pattern)

    def forget_match(self) -> None:
        """Go on after a match, of which the end may begin the next one."""
        self.matched = self.table[-1]


class StopStrings:
    """The stop strings of one reply. After a match nothing more may be fed."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._automata = [_Automaton(stop, _failure_table(stop)) for stop in stops if stop]
        self._held = ""
        self.matched: str | None = None

    def feed(self, text: str, *, may_match: bool = True) -> str:
        """Take the text of one token and give the text that is now safe to send.

        Sets matched if a stop string ends inside this token; of several the one that starts first wins, and then
        only the text before it is given. Without may_match a string that ends here is ordinary text.
        """
        if not self._automata:
            return text
        base = len(self._held)
        whole = self._held + text
        cut = len(whole) + 1
        for automaton in self._automata:
            for i, char in enumerate(text):
                if not automaton.advance(char):
                    continue
                if not may_match:
                    automaton.forget_match()
                    continue
                start = base + i + 1 - len(automaton.pattern)
                if start < cut:
                    cut, self.matched = start, automaton.pattern
                break
        if self.matched is not None:
            self._held = ""
            return whole[:cut]
        keep = max(automaton.matched for automaton in self._automata)
        self._held = whole[len(whole) - keep :]
        return whole[: len(whole) - keep]

    def flush(self) -> str:
        """Give what is held: the reply ended otherwise, so it is ordinary text."""
        held, self._held = self._held, ""
        return held
