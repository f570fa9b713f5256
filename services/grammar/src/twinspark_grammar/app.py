"""Composition root: constructs the objects of the service and connects them. Imported by __main__ only."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from prometheus_client import CollectorRegistry

from twinspark.grammar.v1.grammar_pb2_grpc import add_GrammarServiceServicer_to_server
from twinspark_grammar.cache import GrammarCache
from twinspark_grammar.compiling.compiler import Compiler
from twinspark_grammar.compiling.frames import HostConfig
from twinspark_grammar.compiling.job import JobLimits
from twinspark_grammar.grammars import Grammars
from twinspark_grammar.metrics import StatsCollector
from twinspark_grammar.servicer import GrammarServicer, MaskWork
from twinspark_grammar.settings import Settings
from twinspark_grammar.stats import Stats
from twinspark_grammar.tokens import build_tokenizer_info
from twinspark_grammar.vocabulary import Vocabulary
from twinspark_rpc import RpcServer

MIB = 2**20
SERVICE = "twinspark.grammar.v1.GrammarService"


async def serve(settings: Settings, vocabulary: Vocabulary) -> None:
    """Serve until a signal. Raises AddressTakenError."""
    registry, stats = CollectorRegistry(), Stats()
    registry.register(StatsCollector(stats))
    server = RpcServer("grammar", settings, registry)
    compiler = Compiler(_host_config(settings), settings.compilers, settings.compile_queue_limit, stats)
    cache = GrammarCache(settings.cache_mib * MIB, stats)
    grammars = Grammars(compiler, cache, vocabulary.digest, settings.max_source_bytes, stats)
    threads = ThreadPoolExecutor(settings.mask_threads, "masks")
    slow_threads = ThreadPoolExecutor(settings.mask_threads, "slow-masks")
    servicer = GrammarServicer(grammars, vocabulary, MaskWork(threads, slow_threads, settings.mask_seconds), stats)
    server.add(add_GrammarServiceServicer_to_server, servicer, SERVICE)

    async def load() -> None:
        grammars.load(await asyncio.to_thread(build_tokenizer_info, vocabulary))
        await compiler.start()
        servicer.set_loaded()
        await server.set_serving(True)

    loading: asyncio.Task[None] | None = None
    try:
        await server.start()
        loading = asyncio.create_task(load())
        await server.run_until_signal(servicer.drain)
    finally:
        if loading is not None:
            loading.cancel()
        await compiler.close()
        for pool in (threads, slow_threads):
            pool.shutdown(wait=False, cancel_futures=True)


def _host_config(settings: Settings) -> HostConfig:
    return HostConfig(
        model=settings.model,
        limits=JobLimits(settings.max_depth, settings.max_compiled_mib * MIB),
        compile_seconds=settings.compile_seconds,
        compile_memory_bytes=settings.compile_memory_mib * MIB,
        compile_threads=settings.compile_threads,
    )
