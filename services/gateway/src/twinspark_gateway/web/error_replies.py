"""Turns exceptions of routes into JSON errors of one shape."""

import asyncio
import contextlib

import structlog
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from twinspark_gateway.errors import ApiError, body_for, internal_failure
from twinspark_gateway.request_record import RequestRecord

log = structlog.get_logger()

_TEXTS = {404: "There is no such path.", 405: "This path does not take this method."}


# How long a client that still sends gets to read a reply after which the connection closes.
_LINGER_SECONDS = 1.0


class _LastReply(JSONResponse):
    """A reply sent while the body still comes. Closing over bytes that were not read would reset the connection, and
    the client could lose the reply: so the rest is dropped until the client has closed, or the time is over.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                while (message := await receive())["type"] != "http.disconnect" and message.get("more_body"):
                    pass
        await send({"type": "http.response.body", "body": b""})


def add_error_replies(app: FastAPI) -> None:
    """Register the handlers."""
    app.add_exception_handler(ApiError, _reply_to_refusal)
    app.add_exception_handler(HTTPException, _reply_to_http_exception)
    app.add_exception_handler(Exception, _reply_to_failure)


def _reply(request: Request, error: ApiError) -> Response:
    record = getattr(request.state, "record", None)
    if isinstance(record, RequestRecord):
        record.error = error
    kind = _LastReply if "Connection" in error.headers else JSONResponse
    return kind(body_for(request.url.path, error), error.status, error.headers)


async def _reply_to_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return _reply(request, error)


async def _reply_to_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = _TEXTS.get(error.status_code, "The request was refused.")
    return _reply(request, ApiError(error.status_code, message, headers=dict(error.headers or {})))


async def _reply_to_failure(request: Request, error: Exception) -> Response:
    # The server layer logs the traceback, and closes the connection.
    response = _reply(request, internal_failure())
    response.headers["Connection"] = "close"
    return response
