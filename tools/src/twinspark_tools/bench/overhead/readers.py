"""Clients that note when bytes of their stream arrive, and little else: they share the cores with the server."""

import asyncio
import json
import re
import time
from bisect import bisect_left
from dataclasses import dataclass, field

_TOKEN = re.compile(rb'"delta":\{"content":"[^"]')


@dataclass
class Reader(asyncio.Protocol):
    """One stream over one connection."""

    request: bytes
    arrived: list[float] = field(default_factory=list)
    # Total bytes after each arrival.
    ends: list[int] = field(default_factory=list)
    data: bytearray = field(default_factory=bytearray)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(self.request)

    def data_received(self, data: bytes) -> None:
        """Note bytes and their time."""
        self.arrived.append(time.monotonic())
        self.data += data
        self.ends.append(len(self.data))

    def connection_lost(self, exc: Exception | None) -> None:
        """The server has closed, as it was asked to."""
        self.closed.set()

    def token_times(self) -> list[float]:
        """Give when each event with text was complete. Raises ValueError if the stream did not end well."""
        if b"data: [DONE]" not in self.data:
            raise ValueError(f"a stream did not end: {bytes(self.data[:300])!r}")
        return [
            self.arrived[bisect_left(self.ends, self.data.index(b"\n\n", match.start()) + 2)]
            for match in _TOKEN.finditer(self.data)
        ]


async def read_streams(port: int, num_streams: int, num_tokens: int, stagger_seconds: float) -> dict[str, list[float]]:
    """Read chats at once, begun one after the other; give the times of each one's tokens by request id."""
    loop = asyncio.get_running_loop()
    readers: dict[str, Reader] = {}
    for number in range(num_streams):
        request_id = f"stream-{number}"
        reader = readers[request_id] = Reader(_request(request_id, num_tokens))
        await loop.create_connection(lambda reader=reader: reader, "127.0.0.1", port)  # type: ignore[misc]
        await asyncio.sleep(stagger_seconds)
    await asyncio.gather(*(reader.closed.wait() for reader in readers.values()))
    return {request_id: reader.token_times() for request_id, reader in readers.items()}


def _request(request_id: str, num_tokens: int) -> bytes:
    body = json.dumps(
        {
            "messages": [{"role": "user", "content": "Say something."}],
            "max_tokens": num_tokens,
            "stream": True,
            "chat_template_kwargs": {"enable_thinking": False},
        }
    ).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Request-Id: {request_id}\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body
