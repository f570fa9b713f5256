"""The HTTP server: uvicorn, with an end that the requests take part in and errors of one shape."""

import asyncio
import json
import signal
import socket
from types import FrameType

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from twinspark_gateway.errors import ApiError
from twinspark_gateway.web.drain import Drain

# After the drain, for the last bytes; then connections whose client reads nothing are cut.
_CUT_SECONDS = 2


class Protocol(HttpToolsProtocol):
    """Answers what is not HTTP, and so reaches no application, in the shape of every other error."""

    def send_400_response(self, msg: str) -> None:
        """Send the reply and close; only close where the bytes would end up in a reply that has begun."""
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            body = json.dumps(ApiError(400, msg).body(), separators=(",", ":")).encode()
            head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n"
            self.transport.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        self.transport.close()


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


def build_server(app: ASGIApp, drain: Drain, *, drain_seconds: int, idle_seconds: int) -> Server:
    """Give the server of an ASGI application."""
    return Server(
        uvicorn.Config(
            app,
            http=Protocol,
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
