"""The layer around every route: request id, API key, one log line and the metrics of the request."""

import time

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from twinspark_gateway.errors import ApiError, body_for, missing_key
from twinspark_gateway.metrics import GatewayMetrics
from twinspark_gateway.request_log import RequestLog
from twinspark_gateway.request_record import RequestRecord
from twinspark_gateway.web.drain import Drain, draining
from twinspark_gateway.web.keys import Keyring
from twinspark_rpc import REQUEST_ID_KEY
from twinspark_rpc.request_id import read_request_id

log = structlog.get_logger()

_HEALTH = frozenset({"/health", "/v1/health"})
_METRICS = frozenset({"/metrics", "/v1/metrics"})


class AccessLayer:
    """ASGI middleware; a plain one, because wrapping streams in another task would hide that a client has gone."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: GatewayMetrics,
        keyring: Keyring | None,
        open_metrics: bool,
        drain: Drain,
        request_log: RequestLog | None,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._keyring = keyring
        self._drain = drain
        self._request_log = request_log
        self._open_paths = _HEALTH | (_METRICS if open_metrics else frozenset())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = read_request_id([(REQUEST_ID_KEY, headers.get(REQUEST_ID_KEY, ""))])
        record = RequestRecord(request_id, scope["method"], scope["path"])
        scope.setdefault("state", {})["record"] = record

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID_KEY] = request_id
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                record.error = error = self._find_refusal(headers, record)
                if error is None:
                    await self._app(scope, receive, send_with_id)
                else:
                    response = JSONResponse(body_for(record.path, error), error.status, error.headers)
                    await response(scope, receive, send_with_id)
            finally:
                self._report(scope, record)

    def _find_refusal(self, headers: Headers, record: RequestRecord) -> ApiError | None:
        if self._keyring is not None and record.path not in self._open_paths:
            record.key_label = self._keyring.find_label(headers)
            if record.key_label is None:
                return missing_key()
        return draining() if self._drain.has_begun else None

    def _report(self, scope: Scope, record: RequestRecord) -> None:
        route = scope.get("route")
        pattern = getattr(route, "path", "unmatched")
        self._metrics.count(record, pattern, time.monotonic() - record.started)
        fields = record.log_fields()
        # Paths that matched no route are the caller's text.
        fields["path"] = pattern
        if record.path in _HEALTH | _METRICS:
            log.debug("request", **fields)
            return
        log.info("request", **fields)
        if self._request_log is not None:
            self._request_log.write({"request_id": record.request_id, **fields})
