"""The request id: a name that travels with a request through every service, in call metadata and in log lines."""

import re
import uuid
from collections.abc import Iterable

from structlog.contextvars import get_contextvars

REQUEST_ID_KEY = "x-request-id"
_ACCEPTED = re.compile(r"[A-Za-z0-9._:/-]{1,128}")


def request_metadata() -> tuple[tuple[str, str], ...]:
    """Metadata for an outgoing call: the request id of the current context, if one is bound."""
    request_id = get_contextvars().get("request_id")
    return ((REQUEST_ID_KEY, str(request_id)),) if request_id else ()


def read_request_id(metadata: Iterable[tuple[str, str | bytes]] | None) -> str:
    """The caller's request id, or a new one where it sent none or one that is unfit for a log line."""
    for key, value in metadata or ():
        if key == REQUEST_ID_KEY and isinstance(value, str) and _ACCEPTED.fullmatch(value):
            return value
    return uuid.uuid4().hex
