"""A server-sent event stream: comments while nothing is sent, and an end in every case."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import structlog
from fastapi.sse import format_sse_event
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from twinspark_gateway.errors import CLIENT_GONE, ApiError, internal_failure
from twinspark_gateway.web.disconnect import wait_for_disconnect
from twinspark_gateway.web.drain import draining

log = structlog.get_logger()

_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
_KEEPALIVE = format_sse_event(comment="keepalive")
_DONE = format_sse_event(data_str="[DONE]")


@dataclass(frozen=True, slots=True)
class EventForm:
    """How one API writes its events."""

    # Gives the object of the event that tells an error.
    failure: Callable[[ApiError], dict[str, Any]]
    # Events are named by the `type` of their object, and the last one ends the stream; else [DONE] does.
    is_named: bool = False

    def encode(self, data: dict[str, Any]) -> bytes:
        """Give the event of one JSON object."""
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        return format_sse_event(data_str=text, event=data["type"] if self.is_named else None)

    @property
    def end(self) -> bytes:
        """What stands at the end of every stream."""
        return b"" if self.is_named else _DONE


OPENAI_EVENTS = EventForm(ApiError.body)


class EventStream(Response):
    """Sends the objects of a generator as events, then the form's end. After that, also when the client goes before,
    it closes the generator and what it owns for it.

    An error of the generator, or the end of the drain, becomes one error event before that end, because the status is
    already sent.
    """

    def __init__(
        self,
        chunks: AsyncGenerator[dict[str, Any], None],
        owned: AsyncExitStack,
        keepalive_seconds: float,
        on_error: Callable[[ApiError], None],
        over: asyncio.Future[None],
        form: EventForm = OPENAI_EVENTS,
    ) -> None:
        super().__init__(headers=_HEADERS, media_type="text/event-stream")
        # A stream has no length.
        del self.headers["content-length"]
        self._chunks = chunks
        self._owned = owned
        self._keepalive_seconds = keepalive_seconds
        self._on_error = on_error
        self._over = over
        self._form = form

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream; see the class."""
        gone = asyncio.ensure_future(wait_for_disconnect(receive))
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await self._send_chunks(send, gone)
        except (ClientDisconnect, OSError):
            self._on_error(ApiError(CLIENT_GONE, "The client closed the connection."))
        finally:
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)
            await self._chunks.aclose()
            await self._owned.aclose()

    async def _send_chunks(self, send: Send, gone: asyncio.Future[None]) -> None:
        while True:
            following = asyncio.ensure_future(anext(self._chunks, None))
            try:
                while not following.done():
                    waiting: set[asyncio.Future[Any]] = {following, gone, self._over}
                    await asyncio.wait(waiting, timeout=self._keepalive_seconds, return_when=asyncio.FIRST_COMPLETED)
                    if gone.done():
                        self._on_error(ApiError(CLIENT_GONE, "The client closed the connection."))
                        return
                    if following.done() or self._over.done():
                        break
                    await _send_body(send, _KEEPALIVE)
                is_cut = not following.done()
            finally:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
            failure = draining() if is_cut else following.exception()
            chunk = None if failure is not None else following.result()
            if failure is not None:
                await _send_body(send, self._form.encode(self._form.failure(self._report(failure))))
            if chunk is None:
                await _send_body(send, self._form.end, is_last=True)
                return
            await _send_body(send, self._form.encode(chunk))

    def _report(self, failure: BaseException) -> ApiError:
        error = failure if isinstance(failure, ApiError) else internal_failure()
        if error is not failure:
            log.error("stream_failed", exc_info=failure)
        self._on_error(error)
        return error


async def _send_body(send: Send, data: bytes, *, is_last: bool = False) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": not is_last})
