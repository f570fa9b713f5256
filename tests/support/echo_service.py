"""A service of strings without a proto file, for the tests of the RPC library: it echoes, streams, fails and waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, ClassVar

import grpc

from twinspark_rpc import ServiceError

ECHO_SERVICE = "twinspark.echo.v1.EchoService"


class TooLoudError(ServiceError):
    REASON: ClassVar[str] = "TOO_LOUD"
    CODE: ClassVar[grpc.StatusCode] = grpc.StatusCode.RESOURCE_EXHAUSTED
    RETRYABLE: ClassVar[bool] = True


class UnreadableError(ServiceError):
    REASON: ClassVar[str] = "UNREADABLE"
    CODE: ClassVar[grpc.StatusCode] = grpc.StatusCode.INVALID_ARGUMENT
    QUOTES_CALLER: ClassVar[bool] = True


class EchoServicer:
    """Echo answers its request; some words make it refuse (`loud`, `mumble`), break (`secret`) and wait (`wait`)."""

    def __init__(self) -> None:
        self.num_calls = 0
        self.num_closed_streams = 0

    async def Echo(self, request: str, context: grpc.aio.ServicerContext[Any, Any]) -> str:
        self.num_calls += 1
        if request == "loud":
            raise TooLoudError("volume 11 exceeds 10", limit=10)
        if request == "mumble":
            raise UnreadableError("cannot read 'mumble'")
        if request == "secret":
            raise KeyError("the password is swordfish")
        if request == "wait":
            await asyncio.Event().wait()
        return request

    async def Stream(self, request: str, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[str]:
        self.num_calls += 1
        try:
            yield request
            if request == "loud":
                raise TooLoudError("volume 11 exceeds 10", limit=10)
            while True:
                yield request
                await asyncio.sleep(0.01)
        finally:
            self.num_closed_streams += 1


def add_echo_servicer(servicer: Any, server: Any) -> None:
    """What the generator would have written."""
    codecs: dict[str, Any] = {"request_deserializer": bytes.decode}  # grpc encodes strings by itself
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        "Echo": grpc.unary_unary_rpc_method_handler(servicer.Echo, **codecs),
        "Stream": grpc.unary_stream_rpc_method_handler(servicer.Stream, **codecs),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(ECHO_SERVICE, handlers),))


def echo(channel: grpc.aio.Channel) -> Callable[..., Any]:
    """The Echo method of a channel."""
    return channel.unary_unary(
        f"/{ECHO_SERVICE}/Echo", request_serializer=str.encode, response_deserializer=bytes.decode
    )


def stream(channel: grpc.aio.Channel) -> Callable[..., Any]:
    """The Stream method of a channel."""
    return channel.unary_stream(
        f"/{ECHO_SERVICE}/Stream", request_serializer=str.encode, response_deserializer=bytes.decode
    )
