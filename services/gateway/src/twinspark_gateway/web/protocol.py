"""One HTTP connection: uvicorn's, with limits on the head of a request and errors of one shape."""

import asyncio
import json
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from twinspark_gateway.errors import ApiError

# Of a request's line and header fields together; one read of the socket may go past it.
MAX_HEAD_BYTES = 64 << 10
_REASONS = {400: "Bad Request", 431: "Request Header Fields Too Large"}


class Protocol(HttpToolsProtocol):
    """A connection whose client is slow or endless in its head is closed; bodies have limits of their own.

    Answers what reaches no application in the shape of every other error.
    """

    def __init__(self, *arguments: Any, head_seconds: float, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._head_seconds = head_seconds
        self._head_timer: asyncio.TimerHandle | None = None
        self._is_in_head = False
        self._num_head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give the first head its time."""
        super().connection_made(transport)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timer."""
        self._stop_timer()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._is_in_head, self._num_head_bytes = True, 0
        self._start_timer()

    def on_headers_complete(self) -> None:
        """A head is complete."""
        self._is_in_head = False
        self._stop_timer()
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Take bytes; a head that is too large gets a 431."""
        super().data_received(data)
        if self._is_in_head:
            self._num_head_bytes += len(data)
            if self._num_head_bytes > MAX_HEAD_BYTES:
                self._refuse(ApiError(431, "The request's head is too large."))
        elif self._is_idle():
            # Bytes that begin no request, such as a line break, ended the time of an idle connection for good.
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def send_400_response(self, msg: str) -> None:
        """Send the reply and close; only close where the bytes would end up in a reply that has begun."""
        self._refuse(ApiError(400, msg))

    def _refuse(self, error: ApiError) -> None:
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            body = json.dumps(error.body(), separators=(",", ":")).encode()
            head = f"HTTP/1.1 {error.status} {_REASONS[error.status]}\r\n"
            head += "content-type: application/json\r\nconnection: close\r\n"
            self.transport.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        self.transport.close()

    def _is_idle(self) -> bool:
        answered = self.cycle is not None and self.cycle.response_complete
        return answered and self.timeout_keep_alive_task is None and not self.transport.is_closing()

    def _start_timer(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self._head_seconds, self._give_up)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        self.transport.close()
