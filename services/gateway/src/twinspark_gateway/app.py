"""Composition root: the only place that constructs and connects the gateway's objects."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import structlog
from fastapi import FastAPI
from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from twinspark_gateway.clients.engine import EngineClient
from twinspark_gateway.clients.engine_monitor import EngineMonitor
from twinspark_gateway.gateway import Gateway
from twinspark_gateway.metrics import EngineCollector, GatewayMetrics
from twinspark_gateway.prompt.reasoning_memory import ReasoningMemory
from twinspark_gateway.prompt.tokenizer import load_tokenizer
from twinspark_gateway.routes import (
    chat_completions,
    completions,
    health,
    memory,
    messages,
    models,
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
from twinspark_gateway.web.keys import Keyring

log = structlog.get_logger()


def build_app(settings: Settings, drain: Drain) -> FastAPI:
    """Build the application; the drain ends its requests.

    Reads the checkpoint's small files; raises what their loaders raise.
    """
    tokenizer = load_tokenizer(settings.model)
    defaults = load_sampling_defaults(settings.model)
    keyring = Keyring(settings.keys_file) if settings.keys_file is not None else None
    log.info(
        "model_folder_read",
        model=settings.served_name,
        tokenizer=tokenizer is not None,
        chat_template=tokenizer is not None and tokenizer.chat_template is not None,
        keys=keyring is not None,
    )
    if keyring is None and not settings.binds_loopback:
        log.warning("open_to_the_network", why="host is not loopback and keys_file is not set")

    registry = CollectorRegistry()
    metrics = GatewayMetrics(registry)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # The channel belongs to the running event loop.
        engine = EngineClient(settings.engine, settings, settings.engine_timeout_seconds)
        monitor = EngineMonitor(
            engine, poll_seconds=settings.engine_poll_seconds, stale_seconds=settings.engine_timeout_seconds
        )
        collectors = (EngineCollector(monitor), ProcessCollector(registry=None), PlatformCollector(registry=None))
        for collector in (*collectors, GCCollector(registry=CollectorRegistry())):
            registry.register(collector)
        metrics.watch_tasks(asyncio.get_running_loop())
        app.state.gateway = Gateway(
            settings=settings,
            engine=engine,
            monitor=monitor,
            metrics=metrics,
            drain=drain,
            tokenizer=tokenizer,
            names=TokenNames(tokenizer),
            defaults=defaults,
            memory=ReasoningMemory(settings.remembered_replies, settings.remembered_bytes),
            responses=ResponseStore(),
            started_at=int(time.time()),
        )
        await monitor.poll()
        polling = asyncio.create_task(monitor.run())
        yield
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)
        await engine.close()

    layers = [
        Middleware(AccessLayer, metrics=metrics, keyring=keyring, open_metrics=settings.open_metrics, drain=drain)
    ]
    if settings.cors_origins:
        layers.insert(
            0,
            Middleware(
                CORSMiddleware,
                allow_origins=settings.cors_origins,
                allow_methods=["GET", "POST", "DELETE", "OPTIONS"],
                allow_headers=["*"],
                expose_headers=["x-request-id"],
            ),
        )
    app = FastAPI(
        title="Twinspark",
        lifespan=lifespan,
        middleware=layers,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    add_error_replies(app)
    for route in (chat_completions, completions, health, memory, messages, models, responses, tokenize):
        app.include_router(route.router)
    return app
