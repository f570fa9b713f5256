"""Reflection, health, drain, and a taken port."""

import asyncio
import os
import signal
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from prometheus_client import CollectorRegistry

from support.echo_service import ECHO_SERVICE, echo
from support.waiting import PATIENCE_SECONDS
from twinspark_rpc import AddressTakenError

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def check_health(channel: grpc.aio.Channel, service: str = "") -> int:
    answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service))
    return int(answer.status)


async def test_reflection_lists_every_service(start_server: Any) -> None:
    server = await start_server()

    def list_services() -> list[str]:
        with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            return list(ProtoReflectionDescriptorDatabase(channel).get_services())

    names = await asyncio.to_thread(list_services)
    assert set(names) == {ECHO_SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"}


async def test_metrics_show_the_tasks_of_the_event_loop_from_any_thread(start_server: Any, registry: Any) -> None:
    await start_server()

    async def count() -> int:
        return int(await asyncio.to_thread(registry.get_sample_value, "twinspark_echo_asyncio_tasks"))

    before = await count()
    leaked = [asyncio.create_task(asyncio.Event().wait()) for _ in range(3)]
    assert await count() == before + len(leaked)
    for task in leaked:
        task.cancel()
    await asyncio.gather(*leaked, return_exceptions=True)
    assert await count() == before


async def test_health_says_not_serving_until_told_and_after_drain_begins(start_server: Any, connect: Any) -> None:
    server = await start_server()
    channel = connect(server)
    assert await check_health(channel) == NOT_SERVING
    await server.set_serving(True)
    assert await check_health(channel) == SERVING
    assert await check_health(channel, ECHO_SERVICE) == SERVING
    seen = []

    async def drain() -> None:
        seen.append(await check_health(channel))
        await server.set_serving(True)  # too late: the flip is for good
        seen.append(await check_health(channel, ECHO_SERVICE))

    await server.stop(drain)
    assert seen == [NOT_SERVING, NOT_SERVING]


async def test_sigterm_flips_health_then_drains_then_stops(start_server: Any, connect: Any) -> None:
    server = await start_server()
    await server.set_serving(True)
    channel = connect(server)
    events = []

    async def drain() -> None:
        events.append(await check_health(channel))

    serving = asyncio.ensure_future(server.run_until_signal(drain))
    await asyncio.sleep(0.05)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(serving, PATIENCE_SECONDS)
    assert events == [NOT_SERVING]
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await echo(channel)("hello", timeout=PATIENCE_SECONDS)
    assert failed.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_drain_that_does_not_end_is_cut_after_its_time(start_server: Any) -> None:
    server = await start_server(drain_seconds=0.2)
    await asyncio.wait_for(server.stop(asyncio.Event().wait), PATIENCE_SECONDS)


async def test_a_second_signal_stops_at_once(start_server: Any) -> None:
    server = await start_server(drain_seconds=600)
    serving = asyncio.ensure_future(server.run_until_signal(asyncio.Event().wait))
    for _ in range(2):
        await asyncio.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(serving, PATIENCE_SECONDS)


async def test_a_taken_port_is_an_error_that_names_it(start_server: Any, registry: CollectorRegistry) -> None:
    first = await start_server()
    registry._collector_to_names.clear()
    registry._names_to_collectors.clear()
    with pytest.raises(AddressTakenError, match=rf"127\.0\.0\.1:{first.port}: Address already in use"):
        await start_server(port=first.port)
