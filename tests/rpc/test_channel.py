"""Deadlines, retries, round robin, keepalive."""

import asyncio
import signal
import subprocess
import sys
import time
from typing import Any

import grpc
import pytest

from support.echo_service import ECHO_SERVICE, EchoServicer, echo
from support.waiting import PATIENCE_SECONDS
from twinspark_rpc import ChannelSettings, MethodPolicy, open_channel
from twinspark_rpc.channel import build_target


async def test_a_call_that_exceeds_its_policy_ends_with_deadline_exceeded(start_server: Any, connect: Any) -> None:
    policy = MethodPolicy(ECHO_SERVICE, "Echo", timeout_seconds=0.2)
    channel = connect(await start_server(), policies=[policy])
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await asyncio.wait_for(echo(channel)("wait"), PATIENCE_SECONDS)
    assert failed.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED


class FlakyServicer(EchoServicer):
    """Unavailable on its first two calls."""

    async def Echo(self, request: str, context: Any) -> str:
        self.num_calls += 1
        if self.num_calls <= 2:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
        return request


async def test_a_call_with_a_retry_policy_is_repeated_and_one_without_is_not(start_server: Any, connect: Any) -> None:
    server = await start_server(servicer := FlakyServicer())
    with pytest.raises(grpc.aio.AioRpcError):
        await echo(connect(server))("hello")
    assert servicer.num_calls == 1
    channel = connect(server, policies=[MethodPolicy(ECHO_SERVICE, timeout_seconds=PATIENCE_SECONDS, max_attempts=4)])
    assert await echo(channel)("hello") == "hello"
    assert servicer.num_calls == 3


async def test_calls_go_to_the_replicas_in_turn(start_server: Any, connect: Any, registry: Any) -> None:
    first, second = EchoServicer(), EchoServicer()
    servers = [await start_server(first)]
    registry._collector_to_names.clear()
    registry._names_to_collectors.clear()
    servers.append(await start_server(second))
    channel = connect(*servers)
    async with asyncio.timeout(PATIENCE_SECONDS):  # until both are connected
        while not (first.num_calls and second.num_calls):
            await echo(channel)("hello", wait_for_ready=True)
    first.num_calls = second.num_calls = 0
    for _ in range(20):
        await echo(channel)("hello")
    assert (first.num_calls, second.num_calls) == (10, 10)


STOPPABLE = """
import asyncio
from prometheus_client import CollectorRegistry
from support.echo_service import ECHO_SERVICE, EchoServicer, add_echo_servicer
from twinspark_rpc import ListenSettings, RpcServer, configure_logging

async def main() -> None:
    server = RpcServer("echo", ListenSettings(), CollectorRegistry())
    server.add(add_echo_servicer, EchoServicer(), ECHO_SERVICE)
    configure_logging("echo", "error")
    await server.start()
    print(server.port, flush=True)
    await server.run_until_signal()

asyncio.run(main())
"""


async def repeat_until_served(channel: grpc.aio.Channel) -> str:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            try:
                return str(await echo(channel)("again"))
            except grpc.aio.AioRpcError:
                await asyncio.sleep(0.1)


async def test_a_stopped_server_is_noticed_after_the_keepalive_timeout() -> None:
    support = str(sys.modules["support.echo_service"].__file__).rpartition("/support/")[0]
    with subprocess.Popen(
        [sys.executable, "-c", STOPPABLE], stdout=subprocess.PIPE, env={"PYTHONPATH": support}
    ) as peer:
        try:
            assert peer.stdout is not None
            port = int(peer.stdout.readline())
            channel = open_channel(f"127.0.0.1:{port}", ChannelSettings(keepalive_timeout_seconds=1))
            assert await echo(channel)("hello") == "hello"
            call = echo(channel)("wait")
            await asyncio.sleep(0.1)
            peer.send_signal(signal.SIGSTOP)
            started = time.monotonic()
            with pytest.raises(grpc.aio.AioRpcError) as failed:
                await asyncio.wait_for(call, PATIENCE_SECONDS)
            assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
            # As the channel was told, not as by default.
            assert 0.5 < time.monotonic() - started < ChannelSettings().keepalive_timeout_seconds
            peer.send_signal(signal.SIGCONT)
            # The peer gives up connections too: its clock says that it heard nothing. A call may meet one of these.
            assert await repeat_until_served(channel) == "again"
            await channel.close()
        finally:
            peer.send_signal(signal.SIGCONT)
            peer.terminate()


@pytest.mark.parametrize(
    ("addresses", "target"),
    [
        ("localhost:7100", "ipv4:127.0.0.1:7100"),
        ("10.0.0.1:1, 10.0.0.2:2", "ipv4:10.0.0.1:1,10.0.0.2:2"),
        ("[::1]:7100", "ipv6:[::1]:7100"),
        ("vision:7200", "dns:///vision:7200"),
    ],
)
def test_targets(addresses: str, target: str) -> None:
    assert build_target(addresses) == target


@pytest.mark.parametrize("addresses", ["", "vision", "vision:", ":7100", "vision:70000", "a:1,b:2", "10.0.0.1:1,b:2"])
def test_addresses_that_are_none_are_refused_by_name(addresses: str) -> None:
    with pytest.raises(ValueError, match="address"):
        build_target(addresses)
