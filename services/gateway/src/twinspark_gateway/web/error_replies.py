"""Turns exceptions of routes into JSON errors of one shape."""

import structlog
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from twinspark_gateway.errors import ApiError, internal_failure
from twinspark_gateway.request_record import RequestRecord

log = structlog.get_logger()

_TEXTS = {404: "There is no such path.", 405: "This path does not take this method."}


def add_error_replies(app: FastAPI) -> None:
    """Register the handlers."""
    app.add_exception_handler(ApiError, _reply_to_refusal)
    app.add_exception_handler(HTTPException, _reply_to_http_exception)
    app.add_exception_handler(Exception, _reply_to_failure)


def _reply(request: Request, error: ApiError) -> Response:
    record = getattr(request.state, "record", None)
    if isinstance(record, RequestRecord):
        record.error = error
    return JSONResponse(error.body(), error.status, error.headers)


async def _reply_to_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return _reply(request, error)


async def _reply_to_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    message = _TEXTS.get(error.status_code, "The request was refused.")
    return _reply(request, ApiError(error.status_code, message, headers=dict(error.headers or {})))


async def _reply_to_failure(request: Request, error: Exception) -> Response:
    # The server layer logs the traceback.
    return _reply(request, internal_failure())
