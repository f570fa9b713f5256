"""Notices that the client closed the connection, and then ends the work for it."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.types import Receive

from twinspark_gateway.errors import CLIENT_GONE, ApiError
from twinspark_gateway.web.drain import draining

ResultT = TypeVar("ResultT")


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the client is gone. Only after the request's body was read whole.

    Bytes of a next, pipelined request are no message here, so they never count as a close.
    """
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return


async def run_while_connected(
    receive: Receive, work: Coroutine[Any, Any, ResultT], over: asyncio.Future[None]
) -> ResultT:
    """Give the result of the work; cancel it and raise a 499 if the client goes first, a 503 if the drain is over."""
    running = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(wait_for_disconnect(receive))
    try:
        waiting: set[asyncio.Future[Any]] = {running, gone, over}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            return running.result()
        if over.done() and not gone.done():
            raise draining()
        raise ApiError(CLIENT_GONE, "The client closed the connection.")
    finally:
        for task in (running, gone):
            task.cancel()
        await asyncio.gather(running, gone, return_exceptions=True)
