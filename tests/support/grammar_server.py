"""The grammar service in this process: its own servicer behind a port, with a compiler that needs no other process."""

import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

from prometheus_client import CollectorRegistry

from support.grammar_texts import demo_grammars
from twinspark.grammar.v1.grammar_pb2_grpc import add_GrammarServiceServicer_to_server
from twinspark_grammar.cache import GrammarCache
from twinspark_grammar.compiling.compiler import Compiler
from twinspark_grammar.compiling.frames import CompileResult
from twinspark_grammar.grammars import Grammars
from twinspark_grammar.servicer import GrammarServicer, MaskWork
from twinspark_grammar.source import GrammarSource
from twinspark_grammar.stats import Stats
from twinspark_rpc import ListenSettings, RpcServer

SERVICE = "twinspark.grammar.v1.GrammarService"


class LocalCompiler:
    """Compiles in the event loop."""

    async def compile(self, source: GrammarSource) -> CompileResult:
        return CompileResult(0, demo_grammars().run(source.kind, source.text), 0.0, was_killed=False)


class HeldThreads(ThreadPoolExecutor):
    """Threads that do their work once they are let."""

    def __init__(self) -> None:
        super().__init__(2)
        self.may_work = threading.Event()
        self.may_work.set()
        self.num_begun = 0

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        def wait() -> Any:
            self.num_begun += 1
            self.may_work.wait()
            return work(*arguments, **options)

        return super().submit(wait)


@dataclass(frozen=True)
class LocalGrammarService:
    """A running service with the demo model's tokenizer."""

    port: int
    stats: Stats
    threads: HeldThreads
    grammars: Grammars

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@asynccontextmanager
async def serve_grammars(port: int = 0) -> AsyncIterator[LocalGrammarService]:
    """Serve until the end; streams that are open then are cut off."""
    stats, threads, vocabulary = Stats(), HeldThreads(), demo_grammars().vocabulary
    grammars = Grammars(
        cast(Compiler, LocalCompiler()), GrammarCache(64 << 20, stats), vocabulary.digest, 1 << 20, stats
    )
    grammars.load(demo_grammars().info)
    servicer = GrammarServicer(
        grammars, vocabulary, MaskWork(threads, threads, window_seconds=1000.0, quick_seconds=0.0), stats
    )
    servicer.set_loaded()
    server = RpcServer("grammar", ListenSettings(port=port, drain_seconds=0), CollectorRegistry())
    server.add(add_GrammarServiceServicer_to_server, servicer, SERVICE)
    await server.start()
    await server.set_serving(True)
    try:
        yield LocalGrammarService(server.port, stats, threads, grammars)
    finally:
        await server.stop()
        threads.may_work.set()
        threads.shutdown()
