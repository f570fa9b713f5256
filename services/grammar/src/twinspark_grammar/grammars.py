"""Getting a compiled grammar: from the cache, from a compilation under way, or from the compiler."""

import asyncio
from dataclasses import dataclass

from xgrammar import CompiledGrammar, TokenizerInfo

from twinspark_grammar.cache import CachedGrammar, GrammarCache
from twinspark_grammar.compiling.compiler import Compiler
from twinspark_grammar.compiling.frames import CompileResult
from twinspark_grammar.compiling.job import Compiled, Refusal, Refused
from twinspark_grammar.errors import GrammarInvalidError, GrammarTooComplexError, GrammarTooLargeError
from twinspark_grammar.source import GrammarSource
from twinspark_grammar.stats import Stats

ERRORS = {
    Refusal.INVALID: GrammarInvalidError,
    Refusal.TOO_LARGE: GrammarTooLargeError,
    Refusal.TOO_COMPLEX: GrammarTooComplexError,
}


@dataclass(frozen=True, slots=True)
class FoundGrammar:
    """A grammar with its handle; `compile_us` is 0 where it was found compiled."""

    handle: str
    entry: CachedGrammar
    compile_us: int


@dataclass(slots=True)
class _UnderWay:
    """A compilation and how many callers wait for it."""

    task: "asyncio.Task[FoundGrammar]"
    num_callers: int = 0


class Grammars:
    """Compiles each source once, however many ask for it at the same time. Event loop only."""

    def __init__(
        self, compiler: Compiler, cache: GrammarCache, tokenizer_digest: str, max_source_bytes: int, stats: Stats
    ) -> None:
        self._compiler = compiler
        self._cache = cache
        self._digest = tokenizer_digest
        self._max_source_bytes = max_source_bytes
        self._stats = stats
        self._info: TokenizerInfo | None = None
        self._under_way: dict[str, _UnderWay] = {}

    def load(self, info: TokenizerInfo) -> None:
        """Take the vocabulary; no grammar can be had before."""
        self._info = info

    def handle_of(self, source: GrammarSource) -> str:
        """Give the handle of a source. Raises GrammarTooLargeError."""
        if len(source.text.encode("utf-8", "surrogatepass")) > self._max_source_bytes:
            self._stats.refused_total += 1
            raise GrammarTooLargeError(f"the source is larger than {self._max_source_bytes} bytes")
        return source.handle(self._digest)

    async def get(self, source: GrammarSource) -> FoundGrammar:
        """Give the compiled grammar. Raises the errors of a refused source, CompilersBusyError, CompilerLostError."""
        handle = self.handle_of(source)
        entry = self._cache.get(handle)
        if entry is not None:
            self._stats.compile_cache_hits_total += 1
            return FoundGrammar(handle, entry, 0)
        under_way = self._under_way.get(handle)
        if under_way is None:
            under_way = self._under_way[handle] = _UnderWay(asyncio.create_task(self._compile(handle, source)))
            under_way.task.add_done_callback(lambda done: self._end(handle, done))
        under_way.num_callers += 1
        try:
            # A caller that leaves does not take the compilation from the others; the last one does.
            return await asyncio.shield(under_way.task)
        finally:
            under_way.num_callers -= 1
            if under_way.num_callers == 0 and not under_way.task.done():
                del self._under_way[handle]
                under_way.task.cancel()

    def _end(self, handle: str, task: "asyncio.Task[FoundGrammar]") -> None:
        under_way = self._under_way.get(handle)
        if under_way is not None and under_way.task is task:
            del self._under_way[handle]
        if not task.cancelled():
            task.exception()  # read, so that asyncio does not report one that no caller waited for

    async def _compile(self, handle: str, source: GrammarSource) -> FoundGrammar:
        result = await self._compiler.compile(source)
        compile_us = int(result.seconds * 1e6)
        self._stats.compile_us_total += compile_us
        compiled = self._check(result)
        assert self._info is not None
        grammar = await asyncio.to_thread(CompiledGrammar.deserialize_json, compiled.serialized, self._info)
        entry = CachedGrammar(grammar, compiled.unenforced, grammar.memory_size_bytes)
        self._cache.put(handle, entry)
        self._stats.compiled_total += 1
        return FoundGrammar(handle, entry, max(compile_us, 1))

    def _check(self, result: CompileResult) -> Compiled:
        self._stats.killed_total += result.was_killed
        if isinstance(result.outcome, Refused):
            self._stats.refused_total += 1
            raise ERRORS[result.outcome.refusal](result.outcome.message)
        return result.outcome
