"""Composition root: the only place that constructs and connects the gateway's objects."""

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Sequence

import structlog
from fastapi import FastAPI
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from twinspark_gateway.clients.engine import EngineClient
from twinspark_gateway.clients.engine_monitor import EngineMonitor
from twinspark_gateway.clients.grammar import GrammarClient
from twinspark_gateway.clients.grammar_monitor import GrammarMonitor
from twinspark_gateway.gateway import Gateway
from twinspark_gateway.metrics import EngineCollector, GatewayMetrics
from twinspark_gateway.prompt.prompt_history import build_history
from twinspark_gateway.prompt.reasoning_memory import ReasoningMemory
from twinspark_gateway.prompt.tokenizer import load_tokenizer
from twinspark_gateway.reply.answer_check import Checking
from twinspark_gateway.request_log import build_request_log
from twinspark_gateway.routes import (
    chat_completions,
    completions,
    health,
    memory,
    messages,
    models,
    openapi,
    responses,
    tokenize,
)
from twinspark_gateway.schemas.logprobs import TokenNames
from twinspark_gateway.schemas.responses.store import ResponseStore
from twinspark_gateway.schemas.sampling_defaults import load_sampling_defaults
from twinspark_gateway.settings import Settings
from twinspark_gateway.web.access import AccessLayer
from twinspark_gateway.web.drain import Drain
from twinspark_gateway.web.error_replies import add_error_replies
from twinspark_gateway.web.keys import build_keyring

log = structlog.get_logger()


def build_app(settings: Settings, drain: Drain) -> ASGIApp:
    """Build the application; the drain ends its requests.

    Reads the checkpoint's small files; raises what their loaders raise.
    """
    tokenizer = load_tokenizer(settings.model)
    defaults = load_sampling_defaults(settings.model)
    keyring = build_keyring(settings)
    log.info(
        "model_folder_read",
        model=settings.served_name,
        tokenizer=tokenizer is not None,
        chat_template=tokenizer is not None and tokenizer.chat_template is not None,
        keys=keyring is not None,
    )
    if keyring is None and not settings.binds_loopback:
        log.warning("open_to_the_network", why="host is not loopback and no keys are set")

    request_log = build_request_log(settings)
    registry = CollectorRegistry()
    metrics = GatewayMetrics(registry)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # The channel belongs to the running event loop.
        engine = EngineClient(
            settings.engine,
            settings,
            timeout_seconds=settings.engine_timeout_seconds,
            stall_seconds=settings.stall_seconds,
        )
        monitor = EngineMonitor(
            engine,
            poll_seconds=settings.engine_poll_seconds,
            stale_seconds=settings.engine_timeout_seconds,
            is_strict=settings.health_mode == "strict",
        )
        grammar, grammar_monitor = _connect_grammar(settings, metrics)
        collectors = (EngineCollector(monitor, grammar_monitor), GCCollector(registry=CollectorRegistry()))
        for collector in (*collectors, ProcessCollector(registry=None), PlatformCollector(registry=None)):
            registry.register(collector)
        metrics.watch_tasks(asyncio.get_running_loop())
        app.state.gateway = Gateway(
            settings=settings,
            engine=engine,
            monitor=monitor,
            grammar=grammar,
            grammar_monitor=grammar_monitor,
            checking=Checking(settings.check_seconds, metrics.note_check),
            metrics=metrics,
            drain=drain,
            tokenizer=tokenizer,
            names=TokenNames(tokenizer),
            defaults=defaults,
            memory=ReasoningMemory(settings.remembered_replies, settings.remembered_bytes),
            responses=ResponseStore(),
            history=build_history(tokenizer) if request_log is not None else None,
            started_at=int(time.time()),
        )
        if keyring is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, keyring.reload)
        await monitor.poll()
        polling = [asyncio.create_task(each.run()) for each in (monitor, grammar_monitor) if each is not None]
        yield
        for task in polling:
            task.cancel()
        await asyncio.gather(*polling, return_exceptions=True)
        await engine.close()
        if grammar is not None:
            await grammar.close()
        if request_log is not None:
            request_log.close()

    app = FastAPI(
        title="Twinspark",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    add_error_replies(app)
    for route in (chat_completions, completions, health, memory, messages, models, openapi, responses, tokenize):
        app.include_router(route.router)
    # Around the whole application, and not among its middleware: a failure's reply is made outside of those, and it
    # needs an id and a browser's headers like any other.
    layered = AccessLayer(
        app,
        metrics=metrics,
        keyring=keyring,
        open_metrics=settings.open_metrics,
        drain=drain,
        request_log=request_log,
    )
    return _allow_origins(layered, settings.cors_origins)


def _connect_grammar(
    settings: Settings, metrics: GatewayMetrics
) -> tuple[GrammarClient, GrammarMonitor] | tuple[None, None]:
    if not settings.grammar:
        return None, None
    grammar = GrammarClient(
        settings.grammar,
        settings,
        timeout_seconds=settings.grammar_timeout_seconds,
        note_compile=metrics.note_compile,
    )
    return grammar, GrammarMonitor(grammar, poll_seconds=settings.engine_poll_seconds)


def _allow_origins(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=origins,
        # Browsers refuse credentials beside "*".
        allow_credentials="*" not in origins,
        allow_methods=["GET", "POST", "DELETE", "OPTIONS"],
        # Echoes what is asked for: "*" does not cover Authorization.
        allow_headers=["*"],
        expose_headers=["x-request-id"],
    )
