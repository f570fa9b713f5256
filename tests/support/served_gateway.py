"""A gateway that serves on loopback: in the test's event loop, or in a thread for clients that block."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from fakes.engine import FakeEngine, serve_engine
from support.waiting import PATIENCE_SECONDS
from twinspark_gateway.app import build_app
from twinspark_gateway.settings import Settings
from twinspark_gateway.web.drain import Drain
from twinspark_gateway.web.listener import open_listener
from twinspark_gateway.web.server import build_server


@asynccontextmanager
async def serve_gateway(settings: Settings) -> AsyncIterator[str]:
    """Serve on a free port; give the URL."""
    listener = open_listener("127.0.0.1", 0)
    drain = Drain(settings.drain_seconds)
    server = build_server(
        build_app(settings, drain),
        drain,
        drain_seconds=settings.drain_seconds,
        idle_seconds=settings.idle_seconds,
        head_seconds=settings.body_timeout_seconds,
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        assert not serving.done()
        await asyncio.sleep(0.005)
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving
        listener.close()


@contextmanager
def serve_in_thread(settings: Settings, engine: FakeEngine) -> Iterator[str]:
    """Serve a gateway over the engine in a thread; give its URL. The settings' own engine is not used."""
    started, stop = threading.Event(), asyncio.Event()
    urls: list[str] = []
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        async with (
            serve_engine(engine) as address,
            serve_gateway(settings.model_copy(update={"engine": address})) as url,
        ):
            urls.append(url)
            started.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    try:
        assert started.wait(PATIENCE_SECONDS)
        yield urls[0]
    finally:
        if loops:
            loops[0].call_soon_threadsafe(stop.set)
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()
