"""Wrapping an RPC handler, of any of the four kinds, in an async context manager.

Streamed answers are written from the wrapper's own frame, so that a cancelled call closes the service's generator at
once instead of whenever it is collected.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Any, TypeAlias

import grpc

# In quotes: generic in the type stubs only.
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Around: TypeAlias = "Callable[[Context], AbstractAsyncContextManager[None]]"


def wrap_handler(handler: Handler, around: Around) -> Handler:
    """The same handler, with every call run inside `around(context)`."""
    codecs = {
        "request_deserializer": handler.request_deserializer,
        "response_serializer": handler.response_serializer,
    }
    if handler.response_streaming:
        if handler.request_streaming:
            return grpc.stream_stream_rpc_method_handler(_wrap_streamed(handler.stream_stream, around), **codecs)
        return grpc.unary_stream_rpc_method_handler(_wrap_streamed(handler.unary_stream, around), **codecs)
    if handler.request_streaming:
        return grpc.stream_unary_rpc_method_handler(_wrap_single(handler.stream_unary, around), **codecs)
    return grpc.unary_unary_rpc_method_handler(_wrap_single(handler.unary_unary, around), **codecs)


def _wrap_single(behavior: Any, around: Around) -> Any:
    async def run(request: Any, context: Context) -> Any:
        async with around(context):
            return await behavior(request, context)

    return run


def _wrap_streamed(behavior: Any, around: Around) -> Any:
    async def run(request: Any, context: Context) -> None:
        async with around(context):
            answer: AsyncIterator[Any] | Awaitable[None] = behavior(request, context)
            if inspect.isawaitable(answer):  # a handler that writes to the context itself
                await answer
                return
            async with aclosing(answer) as messages:  # type: ignore[type-var]
                async for message in messages:
                    await context.write(message)

    return run
