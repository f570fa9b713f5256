"""Streamed answers are written from the wrapper's frame."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc

from twinspark_rpc.handlers import wrap_handler


class StuckContext:
    """A call whose client does not read: write never returns."""

    def __init__(self) -> None:
        self.is_writing = asyncio.Event()

    async def write(self, message: str) -> None:
        self.is_writing.set()
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def around(context: Any) -> AsyncIterator[None]:
    yield


async def test_a_generator_that_is_held_elsewhere_is_closed_when_a_call_is_cancelled_in_write() -> None:
    held, closed = [], []

    async def numbers() -> AsyncIterator[str]:
        try:
            yield "one"
        finally:
            closed.append(True)

    def behavior(request: str, context: Any) -> AsyncIterator[str]:
        held.append(numbers())
        return held[0]

    context = StuckContext()
    handler: Any = wrap_handler(grpc.unary_stream_rpc_method_handler(behavior), around)
    call = asyncio.ensure_future(handler.unary_stream("", context))
    await context.is_writing.wait()
    call.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await call
    assert closed == [True]
