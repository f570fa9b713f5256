"""What happens around every call of a server: request id, log line, metrics, and errors turned into statuses."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType

import grpc
import structlog
from structlog.contextvars import bound_contextvars

from twinspark_rpc.errors import ServiceError
from twinspark_rpc.handlers import Context, Handler, wrap_handler
from twinspark_rpc.metrics import RpcMetrics
from twinspark_rpc.request_id import read_request_id
from twinspark_rpc.statuses import INTERNAL_MESSAGE, pack_trailers

log = structlog.get_logger()


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Wraps every call. `domain` names the service in ErrorInfo."""

    def __init__(self, domain: str, metrics: RpcMetrics) -> None:
        self._domain = domain
        self._metrics = metrics

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        handler = await continuation(handler_call_details)
        if handler is None:  # no such method: grpc answers UNIMPLEMENTED
            return handler
        method = handler_call_details.method
        return wrap_handler(handler, lambda context: self._around(context, method))

    @asynccontextmanager
    async def _around(self, context: Context, method: str) -> AsyncIterator[None]:
        started = time.monotonic()
        with bound_contextvars(request_id=read_request_id(context.invocation_metadata())):
            code = grpc.StatusCode.CANCELLED
            try:
                async with _ErrorToStatus(context, self._domain, method):
                    yield
                code = read_code(context)
            except grpc.aio.AbortError:
                code = read_code(context)
                raise
            finally:
                seconds = time.monotonic() - started
                self._metrics.observe(method, code, seconds)
                log.debug("rpc_finished", method=method, code=code.name, duration_ms=round(seconds * 1000, 3))


class _ErrorToStatus(AbstractAsyncContextManager[None]):
    """Aborts the call with the status of the exception that left its body; what is not ours becomes INTERNAL."""

    def __init__(self, context: Context, domain: str, method: str) -> None:
        self._context = context
        self._domain = domain
        self._method = method

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None or not isinstance(error, Exception) or isinstance(error, grpc.aio.AbortError):
            return
        if isinstance(error, ServiceError):
            message = "" if error.QUOTES_CALLER else error.message
            log.debug("rpc_refused", method=self._method, reason=error.REASON, message=message)
        else:
            log.error("rpc_failed", method=self._method, exc_info=error)
            error = ServiceError(INTERNAL_MESSAGE)
        await self._context.abort(error.CODE, error.message, pack_trailers(error, self._domain))


def read_code(context: Context) -> grpc.StatusCode:
    """The status of a call whose handler has ended; grpc keeps OK as an unset code, and codes as numbers."""
    number = context.code()
    for code in grpc.StatusCode:
        if number in (code, code.value[0]):
            return code
    return grpc.StatusCode.OK
