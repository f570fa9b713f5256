"""Reads a request body as a JSON object, whatever its Content-Type says; every refusal is a plain 4xx."""

import asyncio
import json
import math
import re
from typing import Any

from starlette.requests import ClientDisconnect, Request

from twinspark_gateway.errors import CLIENT_GONE, ApiError
from twinspark_gateway.web.drain import draining

# Of a refusal that leaves a part of the body unread.
LAST_REPLY = {"Connection": "close"}
# Lists and objects inside each other. What reads a value, renders it or shows it may take several frames for a level.
MAX_DEPTH = 128
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


async def read_json_object(
    request: Request, max_bytes: int, timeout_seconds: float, over: asyncio.Future[None]
) -> dict[str, Any]:
    """Give the request's JSON object. Raises a 400, 408, 413, a 499 if the client goes, a 503 if the drain is over."""
    body = await _read_body(request, max_bytes, timeout_seconds, over)
    try:
        value = json.loads(body.decode("utf-8"), parse_float=_read_float, parse_constant=_refuse_constant)
    except UnicodeDecodeError:
        raise ApiError(400, "The request body is not JSON: it is not UTF-8.") from None
    except RecursionError:
        raise _too_deep() from None
    except json.JSONDecodeError as error:
        where = f"at line {error.lineno}, column {error.colno}"
        raise ApiError(400, f"The request body is not JSON: {error.msg} {where}.") from None
    except ValueError:
        # Python's limit of an integer's digits.
        raise _too_large_number() from None
    if not isinstance(value, dict):
        raise ApiError(400, "The request body must be a JSON object.")
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and not _is_shallow(value):
        raise _too_deep()
    return dict(_replace_surrogates(value)) if _ESCAPED_SURROGATE.search(body) else value


async def _read_body(request: Request, max_bytes: int, timeout_seconds: float, over: asyncio.Future[None]) -> bytes:
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal():
        raise ApiError(400, "The Content-Length header is not a number.")
    if int(declared) > max_bytes:
        raise _too_large(max_bytes)
    reading = asyncio.ensure_future(_collect(request, max_bytes))
    try:
        waiting: set[asyncio.Future[Any]] = {reading, over}
        await asyncio.wait(waiting, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            return reading.result()
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    error = draining() if over.done() else ApiError(408, "The request body did not arrive in time.")
    error.headers = LAST_REPLY
    raise error


async def _collect(request: Request, max_bytes: int) -> bytes:
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > max_bytes:
                raise _too_large(max_bytes)
    except ClientDisconnect:
        raise ApiError(CLIENT_GONE, "The client closed the connection.") from None
    return bytes(body)


def _read_float(text: str) -> float:
    """Refuse what becomes infinite: replies that show a request's fields could not spell it."""
    value = float(text)
    if math.isinf(value):
        raise _too_large_number()
    return value


def _is_shallow(value: Any) -> bool:
    """Say whether nothing lies deeper than MAX_DEPTH. Level by level: a recursion is what must not overflow."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = [item.values() if isinstance(item, dict) else item for item in level]
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
    return not level


def _too_deep() -> ApiError:
    return ApiError(400, f"The request body is nested too deeply: more than {MAX_DEPTH} levels.")


def _too_large(max_bytes: int) -> ApiError:
    return ApiError(413, f"The request body is larger than {max_bytes} bytes.", headers=LAST_REPLY)


def _too_large_number() -> ApiError:
    return ApiError(400, "The request body holds a number that is too large.")


def _refuse_constant(name: str) -> float:
    raise ApiError(400, f"The request body is not JSON: {name} is not a JSON number.")


def _replace_surrogates(value: Any) -> Any:
    """Put U+FFFD for halves of a surrogate pair: cut texts hold them, and they cannot be encoded."""
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(item) for key, item in value.items()}
    return value
