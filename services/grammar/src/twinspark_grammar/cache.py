"""Compiled grammars by handle, within a budget of bytes.

A grammar that a stream uses stays with the stream when it is dropped here.
"""

from collections import OrderedDict
from dataclasses import dataclass

from xgrammar import CompiledGrammar

from twinspark_grammar.schema.enforcement import Unenforced
from twinspark_grammar.stats import Stats


@dataclass(frozen=True, slots=True)
class CachedGrammar:
    """A compiled grammar and what it does not enforce."""

    grammar: CompiledGrammar
    unenforced: tuple[Unenforced, ...]
    num_bytes: int


class GrammarCache:
    """Least recently used grammars go first. Event loop only."""

    def __init__(self, budget_bytes: int, stats: Stats) -> None:
        self._budget_bytes = budget_bytes
        self._stats = stats
        self._entries: OrderedDict[str, CachedGrammar] = OrderedDict()

    def __contains__(self, handle: str) -> bool:
        return handle in self._entries

    def get(self, handle: str) -> CachedGrammar | None:
        """Give the grammar, which counts as used now; None where it is not held."""
        entry = self._entries.get(handle)
        if entry is not None:
            self._entries.move_to_end(handle)
        return entry

    def put(self, handle: str, entry: CachedGrammar) -> None:
        """Keep a grammar and drop others for it; one larger than the budget is not kept."""
        if entry.num_bytes > self._budget_bytes or handle in self._entries:
            return
        self._entries[handle] = entry
        self._stats.cache_bytes += entry.num_bytes
        while self._stats.cache_bytes > self._budget_bytes:
            _, dropped = self._entries.popitem(last=False)
            self._stats.cache_bytes -= dropped.num_bytes
            self._stats.evicted_total += 1
