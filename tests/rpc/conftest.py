"""A listening RpcServer with an echo service, and a channel to it."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import grpc
import pytest
import structlog
from prometheus_client import CollectorRegistry

from support.echo_service import ECHO_SERVICE, EchoServicer, add_echo_servicer
from twinspark_rpc import ChannelSettings, ListenSettings, RpcServer, open_channel

StartServer = Callable[..., Awaitable[RpcServer]]


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture(autouse=True)
def logging_restored() -> Iterator[None]:
    """`configure_logging` changes the process: put the root logger and structlog back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
async def start_server(registry: CollectorRegistry) -> AsyncIterator[StartServer]:
    servers: list[RpcServer] = []

    async def start(servicer: Any = None, **settings: Any) -> RpcServer:
        server = RpcServer("echo", ListenSettings(**{"drain_seconds": 0.5, **settings}), registry)
        server.add(add_echo_servicer, servicer or EchoServicer(), ECHO_SERVICE)
        await server.start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        await server.stop()


@pytest.fixture
async def connect() -> AsyncIterator[Callable[..., grpc.aio.Channel]]:
    channels: list[grpc.aio.Channel] = []

    def open_to(*servers: RpcServer, policies: Any = (), **settings: Any) -> grpc.aio.Channel:
        addresses = ",".join(f"127.0.0.1:{server.port}" for server in servers)
        channels.append(open_channel(addresses, ChannelSettings(**settings), policies))
        return channels[-1]

    yield open_to
    for channel in channels:
        await channel.close()
