"""The HTTP server: uvicorn, with an end that the requests take part in and errors of one shape."""

import asyncio
import functools
import signal
import socket
from types import FrameType
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from twinspark_gateway.web.drain import Drain
from twinspark_gateway.web.protocol import Protocol

# After the drain, for the last bytes; then connections whose client reads nothing are cut.
_CUT_SECONDS = 2


class Server(uvicorn.Server):
    """Begins the drain at the first signal. A second Ctrl-C ends it."""

    def __init__(self, config: uvicorn.Config, drain: Drain) -> None:
        super().__init__(config)
        self._drain = drain

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note a signal; the event loop may be at any point."""
        if self.should_exit:
            if sig == signal.SIGINT:
                self.servers[0].get_loop().call_soon_threadsafe(self._drain.end)
            return
        self._drain.has_begun = True
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, wait for the requests that run, end what the drain leaves."""
        loop = asyncio.get_running_loop()
        self._drain.over.add_done_callback(lambda _: loop.call_later(_CUT_SECONDS, self._cut))
        self._drain.begin()
        await super().shutdown(sockets)

    def _cut(self) -> None:
        for connection in list(self.server_state.connections):
            transport = getattr(connection, "transport", None)
            if isinstance(transport, asyncio.Transport):
                transport.abort()


def build_server(app: ASGIApp, drain: Drain, *, drain_seconds: int, idle_seconds: int, head_seconds: float) -> Server:
    """Give the server of an ASGI application."""
    return Server(
        uvicorn.Config(
            app,
            # A class in uvicorn's words: anything that makes a protocol.
            http=cast(Any, functools.partial(Protocol, head_seconds=head_seconds)),
            # Without it uvicorn picks up any library for web sockets that is installed.
            ws="none",
            access_log=False,
            log_config=None,
            log_level="warning",
            timeout_keep_alive=idle_seconds,
            # Nothing should be left for it: the drain and the cut come before.
            timeout_graceful_shutdown=drain_seconds + _CUT_SECONDS + 1,
            server_header=False,
        ),
        drain,
    )
