"""Streams on the wire: headers, comments, failures, and clients that leave."""

import asyncio
import contextlib
import json
import socket
import struct
import threading
import time
from typing import Any
from urllib.parse import urlsplit

import pytest
import structlog

from fakes.engine import FakeEngine, QueueFullError, RankLostError
from fakes.engine_model import FakeModel
from support.scripts import say
from support.waiting import PATIENCE_SECONDS, eventually
from twinspark_gateway.routes import conversations

CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}
LONG = HELLO | {"ignore_eos": True, "max_tokens": 400}


def open_request(gateway: Any, body: dict[str, Any], path: str = CHAT) -> socket.socket:
    """Send a request over a plain socket."""
    url = urlsplit(gateway.url)
    data = json.dumps(body).encode()
    client = socket.create_connection((url.hostname, url.port))
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n"
    client.sendall(head.encode() + data)
    return client


async def test_a_stream_has_the_headers_of_one(gateway: Any) -> None:
    response = await gateway.post(CHAT, HELLO | {"stream": True, "max_tokens": 2})
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-cache"
    assert response.headers["x-accel-buffering"] == "no"
    assert response.headers["x-request-id"]
    assert "content-encoding" not in response.headers
    assert response.text.endswith("data: [DONE]\n\n")


async def test_a_silent_stream_carries_comments(start_gateway: Any) -> None:
    engine = FakeEngine(step_seconds=0.3)
    gateway = await start_gateway(engine, sse_keepalive_seconds=0.05, admission_wait_seconds=0)
    response = await gateway.post(CHAT, HELLO | {"stream": True, "max_tokens": 1})
    assert response.text.count(": keepalive\n\n") >= 3
    assert response.text.endswith("data: [DONE]\n\n")


async def test_headers_and_role_come_before_the_prompt_is_computed(start_gateway: Any) -> None:
    engine = FakeEngine(prefill_seconds=PATIENCE_SECONDS)
    gateway = await start_gateway(engine, admission_wait_seconds=0.05)
    async with gateway.client.stream("POST", CHAT, json=HELLO | {"stream": True, "max_tokens": 1}) as response:
        async for line in response.aiter_lines():
            assert '"role":"assistant"' in line
            break
        assert engine.counts["output_tokens_total"] == 0


@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_of_the_engine_is_a_plain_error_also_for_a_stream(start_gateway: Any, stream: bool) -> None:
    gateway = await start_gateway(FakeEngine(failure=QueueFullError("full")))
    response = await gateway.post(CHAT, HELLO | {"stream": stream})
    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"
    assert response.json()["error"]["type"] == "server_error"


@pytest.mark.parametrize(("failure", "status"), [(RankLostError("x"), 503), (ZeroDivisionError("secret"), 500)])
async def test_a_failure_of_the_engine_ends_the_request_once(start_gateway: Any, failure: Any, status: int) -> None:
    gateway = await start_gateway(FakeEngine(failure=failure, fail_after=3))
    whole = await gateway.post(CHAT, HELLO)
    assert whole.status_code == status
    assert "secret" not in whole.text
    events = await gateway.events(CHAT, HELLO)
    assert [json.loads(event) for event in events if '"error"' in event] == [whole.json()]
    assert events[-1] == "[DONE]"
    assert '"error"' in events[-2]
    assert not any('"finish_reason":"' in event for event in events)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_while_decoding_frees_the_slot(start_gateway: Any, stream: bool) -> None:
    gateway = await start_gateway(FakeEngine(step_seconds=0.01))
    engine = gateway.engine
    client = open_request(gateway, LONG | {"stream": stream})
    await eventually(lambda: engine.counts["output_tokens_total"] >= 3, "tokens flow")
    client.close()
    await eventually(lambda: not engine.running, "the slot is free")
    assert engine.counts["requests_cancelled_total"] == 1, "it did not run to its end"
    health = (await gateway.client.get("/health")).json()
    assert health["inflight"] == 0
    metrics = (await gateway.client.get("/metrics")).text
    assert "twinspark_gateway_client_disconnections_total 1.0" in metrics


async def test_clients_that_leave_before_their_turn_leave_no_task_behind(start_gateway: Any) -> None:
    gateway = await start_gateway(admission_wait_seconds=PATIENCE_SECONDS)
    engine = gateway.engine
    engine.gate.clear()
    before = len(asyncio.all_tasks())
    running = [open_request(gateway, LONG | {"stream": True}) for _ in range(engine.model.num_slots)]
    await eventually(lambda: len(engine.running) == engine.model.num_slots, "all slots are taken")
    waiting = [open_request(gateway, LONG | {"stream": True}) for _ in range(10)]
    await eventually(lambda: len(engine.waiting) == len(waiting), "the others wait")
    for client in waiting:
        client.close()
    await eventually(lambda: not engine.waiting, "they have left")
    for client in running:
        client.close()
    await eventually(lambda: not engine.running, "the slots are free")
    await eventually(lambda: len(asyncio.all_tasks()) <= before, lambda: asyncio.all_tasks())


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_only_stops_sending_counts_as_gone(start_gateway: Any, stream: bool) -> None:
    gateway = await start_gateway(FakeEngine(step_seconds=0.01))
    client = open_request(gateway, LONG | {"stream": stream})
    await eventually(lambda: gateway.engine.running, "the request runs")
    client.shutdown(socket.SHUT_WR)
    await eventually(lambda: not gateway.engine.running, "the slot is free")
    assert gateway.engine.counts["requests_cancelled_total"] == 1
    client.close()


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_the_queue_never_starts(start_gateway: Any, stream: bool) -> None:
    gateway = await start_gateway(FakeEngine(FakeModel(num_slots=1), step_seconds=0.01))
    first = open_request(gateway, LONG)
    await eventually(lambda: gateway.engine.running, "the request runs")
    second = open_request(gateway, LONG | {"stream": stream})
    await eventually(lambda: gateway.engine.waiting, "the request waits")
    second.close()
    await eventually(lambda: not gateway.engine.waiting, "the queue is empty")
    assert gateway.engine.counts["requests_cancelled_total"] == 1
    assert len(gateway.engine.running) == 1
    first.close()
    await eventually(lambda: not gateway.engine.running, "the slot is free")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("admission_wait_seconds", [0, 60])
async def test_a_client_that_leaves_during_prefill_cancels_it(
    start_gateway: Any, stream: bool, admission_wait_seconds: float
) -> None:
    gateway = await start_gateway(FakeEngine(prefill_seconds=0.2), admission_wait_seconds=admission_wait_seconds)
    client = open_request(gateway, {"prompt": [1] * 500, "max_tokens": 2, "stream": stream}, "/v1/completions")
    await eventually(lambda: gateway.engine.prefilling, "the prompt is computed")
    client.close()
    await eventually(lambda: not gateway.engine.running, "the slot is free")
    assert gateway.engine.counts["output_tokens_total"] == 0
    assert gateway.engine.counts["requests_cancelled_total"] == 1


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_cancels_all_its_choices_and_prompts(start_gateway: Any, stream: bool) -> None:
    gateway = await start_gateway(FakeEngine(FakeModel(num_slots=2), step_seconds=0.01))
    engine = gateway.engine
    body = {"prompt": ["a", "b", "c"], "n": 2, "max_tokens": 400, "ignore_eos": True, "stream": stream}
    client = open_request(gateway, body, "/v1/completions")
    await eventually(lambda: len(engine.running) == 2, "two choices run")
    # A reset, as of a process that was killed.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    await eventually(lambda: not engine.running and not engine.waiting, "the slots are free")
    assert len(engine.requests) == engine.counts["requests_cancelled_total"] == 2
    assert (await gateway.client.get("/health")).json()["inflight"] == 0


async def test_a_client_that_leaves_while_its_prompt_is_encoded_never_starts(
    start_gateway: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def encode_slowly(*_arguments: Any) -> list[int]:
        begun.set()
        may_end.wait(PATIENCE_SECONDS)
        return [1, 2, 3]

    monkeypatch.setattr(conversations, "render_prompt", encode_slowly)
    gateway = await start_gateway()
    gateway.engine.gate.clear()
    with structlog.testing.capture_logs() as lines:
        client = open_request(gateway, LONG)
        await eventually(begun.is_set, "the prompt is encoded")
        client.close()
        await asyncio.sleep(0.1)
        may_end.set()
        await eventually(lambda: any(line["event"] == "request" for line in lines), "its line is logged")
    assert [line["outcome"] for line in lines if line["event"] == "request"] == ["cancelled"]
    await eventually(lambda: not gateway.engine.running, "no slot is taken")
    assert gateway.engine.counts["output_tokens_total"] == 0


async def test_a_pipelined_request_is_no_disconnect(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(step_seconds=0.02, script=say("hello the wörld")))
    client = open_request(gateway, HELLO | {"max_tokens": 12})
    await eventually(lambda: gateway.engine.running, "the request runs")
    client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    data = b""
    while part := await asyncio.to_thread(client.recv, 65536):
        data += part
    assert data.count(b"HTTP/1.1 200 OK") == 2
    assert b'"finish_reason":"stop"' in data
    client.close()


@pytest.mark.parametrize("stream", [True, False])
async def test_a_stop_string_frees_the_slot_at_once(start_gateway: Any, stream: bool) -> None:
    gateway = await start_gateway(FakeEngine(script=say("a</think>hello the" + " x" * 200), step_seconds=0.001))
    response = await gateway.post(CHAT, LONG | {"stream": stream, "stop": "the"})
    assert response.status_code == 200
    await eventually(lambda: not gateway.engine.running, "the slot is free")
    assert gateway.engine.counts["requests_cancelled_total"] == 1
    assert gateway.engine.counts["output_tokens_total"] < 40


async def test_one_failed_choice_ends_the_others(start_gateway: Any) -> None:
    engine = FakeEngine(failure=RankLostError("x"), fail_after=3, step_seconds=0.005)
    gateway = await start_gateway(engine)
    events = await gateway.events(CHAT, LONG | {"n": 2})
    assert sum('"error"' in event for event in events) == 1
    await eventually(lambda: not engine.running, "the slots are free")


async def test_a_body_that_is_too_large_is_refused_and_the_connection_closed(start_gateway: Any) -> None:
    gateway = await start_gateway(max_body_bytes=2000)
    big = b'{"prompt": "' + b"x" * 100_000 + b'"}'

    async def chunks() -> Any:
        for start in range(0, len(big), 1000):
            yield big[start : start + 1000]

    for content in (big, chunks()):
        response = await gateway.client.post("/v1/completions", content=content)
        assert response.status_code == 413
        assert response.headers["connection"] == "close"
        assert response.json()["error"]["type"] == "invalid_request_error"
        assert (await gateway.post("/v1/completions", {"prompt": "a", "max_tokens": 1})).status_code == 200


async def test_a_body_that_never_comes_is_a_408(start_gateway: Any) -> None:
    gateway = await start_gateway(body_timeout_seconds=0.1)
    url = urlsplit(gateway.url)
    client = socket.create_connection((url.hostname, url.port))
    client.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{{".encode())
    assert b" 408 " in await asyncio.to_thread(client.recv, 100)
    client.close()


async def test_after_a_413_nothing_more_is_read(start_gateway: Any) -> None:
    gateway = await start_gateway(max_body_bytes=2000)
    url = urlsplit(gateway.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: {1 << 40}\r\n\r\n".encode())
    assert b" 413 " in await reader.read(200)
    started, num_bytes = time.monotonic(), 0
    with contextlib.suppress(OSError):
        while time.monotonic() - started < PATIENCE_SECONDS:
            writer.write(bytes(1 << 16))
            await writer.drain()
            num_bytes += 1 << 16
            await asyncio.sleep(0.01)
    assert num_bytes < 50 << 20
    writer.close()


@pytest.mark.parametrize("length", ["Content-Length: 50", "Transfer-Encoding: chunked"])
async def test_a_client_that_leaves_while_it_sends_is_a_quiet_end(
    gateway: Any, length: str, caplog: pytest.LogCaptureFixture
) -> None:
    url = urlsplit(gateway.url)
    with structlog.testing.capture_logs() as lines:
        client = socket.create_connection((url.hostname, url.port))
        client.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: x\r\n{length}\r\n\r\n1".encode())
        await asyncio.sleep(0.1)
        client.close()
        await eventually(lambda: any(line["event"] == "request" for line in lines), "its line is logged")
    requests = [line for line in lines if line["event"] == "request"]
    assert [(line["status"], line["outcome"]) for line in requests] == [(499, "cancelled")]
    assert not caplog.records


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: ten\r\n\r\n",
        b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"BREW / HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
async def test_what_is_not_http_gets_an_error_in_json(gateway: Any, request_bytes: bytes) -> None:
    url = urlsplit(gateway.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(request_bytes)
    head, _, body = (await asyncio.wait_for(reader.read(), PATIENCE_SECONDS)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/json" in head
    assert json.loads(body)["error"]["type"] == "invalid_request_error"
    writer.close()
