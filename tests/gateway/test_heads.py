"""The head of a request has a time and a size; an idle connection ends."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.waiting import PATIENCE_SECONDS

REQUEST = b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"


@asynccontextmanager
async def connect(gateway: Any) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a plain connection."""
    url = urlsplit(gateway.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def read_reply(reader: asyncio.StreamReader) -> bytes:
    """Read one reply with a length."""
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    return head + await reader.readexactly(length)


@pytest.mark.parametrize("sent", [b"", b"GET /health HTTP/1.1\r\nHost: x\r\n", REQUEST + b"GET /hea"])
async def test_a_head_that_never_ends_is_given_up(start_gateway: Any, sent: bytes) -> None:
    gateway = await start_gateway(body_timeout_seconds=0.2, idle_seconds=3600)
    async with connect(gateway) as (reader, writer):
        writer.write(sent)
        if sent.startswith(REQUEST):
            assert (await read_reply(reader)).startswith(b"HTTP/1.1 200 ")
        assert await asyncio.wait_for(reader.read(), PATIENCE_SECONDS) == b""
    assert (await gateway.client.get("/health")).status_code == 200


@pytest.mark.parametrize("field", [b"X-Long: " + b"a" * 80_000, b"X-Many: a\r\n" * 8_000, b"a" * 70_000])
async def test_a_head_that_is_too_large_is_a_431(gateway: Any, field: bytes) -> None:
    async with connect(gateway) as (reader, writer):
        writer.write(b"GET /health HTTP/1.1\r\nHost: x\r\n" + field)
        head, _, body = (await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)).partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))
    assert json.loads(body)["error"]["type"] == "invalid_request_error"


async def test_line_breaks_do_not_keep_an_idle_connection(start_gateway: Any) -> None:
    gateway = await start_gateway(idle_seconds=1)
    async with connect(gateway) as (reader, writer):
        writer.write(REQUEST)
        await read_reply(reader)
        writer.write(b"\r\n")
        assert await asyncio.wait_for(reader.read(), PATIENCE_SECONDS) == b""


async def test_a_refusal_that_leaves_a_body_unread_does_not_spoil_the_connection(gateway: Any) -> None:
    async with connect(gateway) as (reader, writer):
        body = b"x" * 200_000
        writer.write(b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert (await read_reply(reader)).startswith(b"HTTP/1.1 404 ")
        writer.write(REQUEST)
        assert (await read_reply(reader)).startswith(b"HTTP/1.1 200 ")


async def test_no_web_socket_is_opened(gateway: Any) -> None:
    async with connect(gateway) as (reader, writer):
        upgrade = (
            b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n"
        )
        writer.write(b"GET /v1/chat/completions HTTP/1.1\r\nHost: x\r\n" + upgrade + b"\r\n")
        assert (await read_reply(reader)).startswith(b"HTTP/1.1 405 ")
