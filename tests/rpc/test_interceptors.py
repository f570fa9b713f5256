"""What callers see of errors, and what is logged and counted."""

import json
from functools import partial
from typing import Any

import grpc
import pytest
from prometheus_client import CollectorRegistry
from structlog.contextvars import bound_contextvars

from support.echo_service import ECHO_SERVICE, EchoServicer, echo, stream
from support.waiting import eventually
from twinspark_rpc import configure_logging, read_status, request_metadata


@pytest.mark.parametrize("kind", ["single", "streamed"])
async def test_error_info_arrives(start_server: Any, connect: Any, kind: str) -> None:
    channel = connect(await start_server())
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        if kind == "single":
            await echo(channel)("loud")
        else:
            async for _ in stream(channel)("loud"):
                pass
    status = read_status(failed.value)
    assert (status.code, status.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_LOUD")
    assert (status.domain, status.retryable, status.metadata) == ("echo.twinspark", True, {"limit": "10"})
    assert status.message == "volume 11 exceeds 10"


async def test_an_unknown_error_hides_its_text_and_logs_it(
    start_server: Any, connect: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("echo", "info", rank=1)
    channel = connect(await start_server())
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await echo(channel)("secret", metadata=(("x-request-id", "r-1"),))
    status = read_status(failed.value)
    assert (status.code, status.reason, status.retryable) == (grpc.StatusCode.INTERNAL, "INTERNAL", False)
    assert "swordfish" not in repr(failed.value)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    line = next(line for line in lines if line["event"] == "rpc_failed")
    assert "swordfish" in line["exception"]
    assert (line["request_id"], line["rank"], line["service"], line["level"]) == ("r-1", 1, "echo", "error")
    assert next(iter(line)) == "event"


async def test_what_quotes_the_caller_reaches_the_caller_and_no_log(
    start_server: Any, connect: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("echo", "debug")
    channel = connect(await start_server())
    for word in ("loud", "mumble"):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await echo(channel)(word)
    assert read_status(failed.value).message == "cannot read 'mumble'"
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    refused = {line["reason"]: line["message"] for line in lines if line["event"] == "rpc_refused"}
    assert refused == {"TOO_LOUD": "volume 11 exceeds 10", "UNREADABLE": ""}
    assert "mumble" not in str(lines)


async def test_calls_are_counted_by_method_and_status(
    start_server: Any, connect: Any, registry: CollectorRegistry
) -> None:
    channel = connect(await start_server())
    await echo(channel)("hello")
    with pytest.raises(grpc.aio.AioRpcError):
        await echo(channel)("loud")
    labels = {"method": f"/{ECHO_SERVICE}/Echo"}
    # A caller has its status a moment before the call is counted.
    count = partial(registry.get_sample_value, "twinspark_echo_rpc_duration_seconds_count", labels)
    await eventually(lambda: count() == 2, "both calls are counted")
    for code in ("OK", "RESOURCE_EXHAUSTED"):
        assert registry.get_sample_value("twinspark_echo_rpcs_total", {**labels, "code": code}) == 1


async def test_the_request_id_travels_from_the_context_of_the_caller_to_the_log_of_the_server(
    start_server: Any, connect: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("echo", "debug")
    channel = connect(await start_server())
    with bound_contextvars(request_id="r-2"):
        await echo(channel)("hello", metadata=request_metadata())
    await echo(channel)("hello", metadata=(("x-request-id", 'no "quotes" here'),))
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    ids = [line["request_id"] for line in lines if line["event"] == "rpc_finished"]
    assert ids[0] == "r-2"
    assert len(ids[1]) == 32  # unfit for a log line: replaced
    assert request_metadata() == ()


async def test_cancelling_a_stream_closes_the_generator_of_the_service_at_once(
    start_server: Any, connect: Any, registry: CollectorRegistry
) -> None:
    servicer = EchoServicer()
    channel = connect(await start_server(servicer))
    call = stream(channel)("hello")
    assert await call.read() == "hello"
    call.cancel()
    await eventually(lambda: servicer.num_closed_streams == 1, "the generator is closed")
    labels = {"method": f"/{ECHO_SERVICE}/Stream", "code": "CANCELLED"}
    count = partial(registry.get_sample_value, "twinspark_echo_rpcs_total", labels)
    await eventually(lambda: count() == 1, "the call is counted")
