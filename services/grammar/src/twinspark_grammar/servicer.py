"""GrammarService: converts, asks, converts back."""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from concurrent.futures import Executor
from dataclasses import dataclass

import grpc

from twinspark.grammar.v1 import grammar_pb2 as pb
from twinspark.grammar.v1.grammar_pb2_grpc import GrammarServiceServicer
from twinspark_grammar.convert import (
    open_from_proto,
    source_from_proto,
    unenforced_to_proto,
    window_from_proto,
    window_to_proto,
)
from twinspark_grammar.errors import (
    GrammarDrainingError,
    GrammarLoadingError,
    HandleMismatchError,
    InvalidFieldError,
    KeywordNotEnforcedError,
)
from twinspark_grammar.grammars import Grammars
from twinspark_grammar.masks import RequestMasks, WindowMasks
from twinspark_grammar.source import GrammarKind
from twinspark_grammar.stats import Stats
from twinspark_grammar.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class MaskWork:
    """Where masks are computed, and for how long at most in one window."""

    threads: Executor
    slow_threads: Executor
    """For streams that have had a slow row, so that they wait for each other only."""
    window_seconds: float
    """Processor time of one window at most."""
    quick_seconds: float = 0.001
    """A window that is expected to take less may hold up other streams."""
    slow_seconds: float = 0.02
    """A window that is expected to take longer goes to the slow threads."""


class GrammarServicer(GrammarServiceServicer):
    """Called by the event loop.

    Masks are computed in threads, since xgrammar lets others run meanwhile; but at once where a stream's rows have all
    been quick, since the way to a thread and back takes several times as long as such a row. Slow streams have threads
    of their own: a row cannot be interrupted.
    """

    def __init__(self, grammars: Grammars, vocabulary: Vocabulary, work: MaskWork, stats: Stats) -> None:
        self._grammars = grammars
        self._vocabulary = vocabulary
        self._work = work
        self._stats = stats
        self._is_loaded = False
        self._is_draining = False
        self._no_streams = asyncio.Event()
        self._no_streams.set()

    async def Compile(
        self, request: pb.CompileRequest, context: grpc.aio.ServicerContext[pb.CompileRequest, pb.CompileResponse]
    ) -> pb.CompileResponse:
        """Compile, or find compiled, and refuse what strict does not allow."""
        self._check_serving()
        source = source_from_proto(request.grammar)
        if request.grammar.handle:
            raise InvalidFieldError("grammar.handle", "must be empty")
        found = await self._grammars.get(source)
        if request.strict or source.kind is GrammarKind.TOOL_CALLS:
            for gap in found.entry.unenforced:
                if gap.is_refused:
                    self._stats.refused_total += 1
                    raise KeywordNotEnforcedError(gap.keyword, gap.path, gap.reason)
        return pb.CompileResponse(
            handle=found.handle, compile_us=found.compile_us, unenforced=unenforced_to_proto(found.entry.unenforced)
        )

    async def Mask(
        self,
        request_iterator: AsyncIterator[pb.MaskRequest],
        context: grpc.aio.ServicerContext[pb.MaskRequest, pb.MaskResponse],
    ) -> AsyncIterator[pb.MaskResponse]:
        """Follow one request."""
        self._check_serving()
        self._count_streams(1)
        try:
            first = await anext(request_iterator, None)
            if first is None:
                return
            masks = await self._open(first)
            yield pb.MaskResponse()
            number = 0
            async for message in request_iterator:
                window = window_from_proto(message, number)
                yield window_to_proto(number, await self._advance(masks, window))
                number += 1
        finally:
            self._count_streams(-1)

    async def GetStats(
        self, request: pb.GetStatsRequest, context: grpc.aio.ServicerContext[pb.GetStatsRequest, pb.GetStatsResponse]
    ) -> pb.GetStatsResponse:
        """Answer the counters."""
        stats = self._stats
        return pb.GetStatsResponse(
            serving=self._is_loaded and not self._is_draining,
            num_streams=stats.num_streams,
            num_compiling=stats.num_compiling,
            compiled_total=stats.compiled_total,
            compile_cache_hits_total=stats.compile_cache_hits_total,
            refused_total=stats.refused_total,
            masks_total=stats.masks_total,
            compile_us_total=stats.compile_us_total,
            mask_us_total=stats.mask_us_total,
            cache_bytes=stats.cache_bytes,
            evicted_total=stats.evicted_total,
            killed_total=stats.killed_total,
            compiler_restarts_total=stats.compiler_restarts_total,
        )

    def set_loaded(self) -> None:
        """Take calls from now on."""
        self._is_loaded = True

    async def drain(self) -> None:
        """Refuse new calls and return when the open streams have ended."""
        self._is_draining = True
        await self._no_streams.wait()

    async def _open(self, message: pb.MaskRequest) -> RequestMasks:
        opened = open_from_proto(message, self._vocabulary)
        if opened.handle != self._grammars.handle_of(opened.source):
            raise HandleMismatchError
        found = await self._grammars.get(opened.source)
        return RequestMasks(found.entry.grammar, self._vocabulary, opened.params, self._work.window_seconds)

    async def _advance(self, masks: RequestMasks, window: pb.MaskWindow) -> WindowMasks:
        started = time.perf_counter()
        committed, drafts = list(window.committed_token_ids), list(window.draft_token_ids)
        expected = masks.expect_seconds(len(drafts) + 1)
        if expected < self._work.quick_seconds:
            result = masks.advance(committed, drafts)
        else:
            is_slow = self._work.slow_seconds < expected < math.inf
            threads = self._work.slow_threads if is_slow else self._work.threads
            result = await asyncio.get_running_loop().run_in_executor(threads, masks.advance, committed, drafts)
        self._stats.masks_total += len(result.complete)
        self._stats.mask_us_total += int((time.perf_counter() - started) * 1e6)
        return result

    def _count_streams(self, change: int) -> None:
        self._stats.num_streams += change
        if self._stats.num_streams:
            self._no_streams.clear()
        else:
            self._no_streams.set()

    def _check_serving(self) -> None:
        if self._is_draining:
            raise GrammarDrainingError
        if not self._is_loaded:
            raise GrammarLoadingError
