"""What a client sees while the engine loads, drains, is stopped, dies and comes back."""

import asyncio
import json
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from fakes.engine import FakeEngine
from support.waiting import PATIENCE_SECONDS
from twinspark.engine.v1 import engine_pb2 as pb

CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}], "ignore_eos": True}
TESTS = Path(__file__).parents[1]
TIMEOUT = 2.0


def find_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


class EngineProcess:
    """A fake engine in its own process."""

    def __init__(self) -> None:
        self.port = find_free_port()
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "fakes.run_engine", str(self.port), "0.1", cwd=TESTS
        )

    def send(self, number: int) -> None:
        """Send a signal."""
        assert self._process is not None
        os.kill(self._process.pid, number)

    async def end(self) -> None:
        """Kill it."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()


@pytest.fixture
async def engine_process() -> AsyncIterator[EngineProcess]:
    """An engine in a process of its own, running."""
    process = EngineProcess()
    await process.start()
    yield process
    await process.end()


async def wait_for_health(client: httpx2.AsyncClient, status: int, **values: int) -> dict[str, Any]:
    """Wait until /health has the status, and these values in its body; give the body."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        response = await client.get("/health")
        body: dict[str, Any] = response.json()
        if response.status_code == status and body.items() >= values.items():
            return body
        assert time.monotonic() < deadline, response.text
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
async def test_a_lost_engine_ends_requests_with_an_error_and_serves_again_when_it_is_back(
    start_gateway: Any, engine_process: EngineProcess, number: int
) -> None:
    gateway = await start_gateway(
        FakeEngine(),
        engine=f"127.0.0.1:{engine_process.port}",
        keepalive_timeout_seconds=TIMEOUT,
        engine_timeout_seconds=TIMEOUT,
    )
    await wait_for_health(gateway.client, 200)
    before = (await gateway.post(CHAT, HELLO | {"max_tokens": 5, "return_token_ids": True})).json()
    running = [
        asyncio.create_task(gateway.events(CHAT, HELLO | {"max_tokens": 450})),
        asyncio.create_task(gateway.post(CHAT, HELLO | {"max_tokens": 450})),
    ]
    await wait_for_health(gateway.client, 200, requests_running=2)
    lost_at = time.monotonic()
    engine_process.send(number)
    events, whole = await running[0], await running[1]
    assert time.monotonic() - lost_at < TIMEOUT + 5
    assert json.loads(events[-2])["error"]["type"] == "server_error"
    assert events[-1] == "[DONE]"
    assert whole.status_code == 503
    assert (whole.headers.get("retry-after"), whole.headers.get("x-should-retry")) == ("1", None)
    health = await wait_for_health(gateway.client, 503)
    assert health["problem"] == "it does not answer"
    refused = await gateway.post(CHAT, HELLO)
    assert (refused.status_code, refused.headers.get("retry-after")) == (503, "1")
    assert "x-should-retry" not in refused.headers
    assert (await gateway.post("/tokenize", {"prompt": "a"})).status_code == 200
    if number == signal.SIGSTOP:
        engine_process.send(signal.SIGCONT)
    else:
        await engine_process.end()
        await engine_process.start()
    await wait_for_health(gateway.client, 200)
    after = (await gateway.post(CHAT, HELLO | {"max_tokens": 5, "return_token_ids": True})).json()
    assert after["choices"] == before["choices"]


async def test_before_the_engine_is_there_everything_that_needs_it_is_a_503(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(), engine=f"127.0.0.1:{find_free_port()}", engine_timeout_seconds=0.2)
    health = await gateway.client.get("/health")
    assert (health.status_code, health.json()["problem"]) == (503, "it was not reached yet")
    assert (await gateway.post(CHAT, HELLO)).status_code == 503
    assert (await gateway.post("/v1/completions", {"prompt": "a"})).status_code == 503
    assert (await gateway.post("/tokenize", {"prompt": "a"})).json()["max_model_len"] is None
    assert (await gateway.client.get("/v1/models")).json()["data"][0]["context_length"] is None
    assert "twinspark_gateway_engine_up 0.0" in (await gateway.client.get("/metrics")).text


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (pb.ENGINE_STATE_LOADING, "loading"),
        (pb.ENGINE_STATE_FORMING, "forming"),
        (pb.ENGINE_STATE_DRAINING, "draining"),
    ],
)
async def test_an_engine_that_takes_no_requests_is_a_503_that_says_why(
    start_gateway: Any, state: int, word: str
) -> None:
    gateway = await start_gateway(FakeEngine(state=state))
    health = await gateway.client.get("/health")
    assert (health.status_code, health.json()["problem"]) == (503, f"it is {word}")
    refused = await gateway.post(CHAT, HELLO)
    assert refused.status_code == 503
    assert word in refused.json()["error"]["message"]
    gateway.engine.state = pb.ENGINE_STATE_SERVING
    await wait_for_health(gateway.client, 200)


async def test_health_and_metrics_answer_from_the_last_copy_with_its_age(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine(step_seconds=0.02), engine_poll_seconds=0.05)
    gateway.engine.gate.clear()
    request = asyncio.create_task(gateway.post(CHAT, HELLO | {"max_tokens": 30}))
    health = await wait_for_health(gateway.client, 200, requests_running=1)
    assert (health["inflight"], health["requests_running"], health["busy"]) == (1, 1, True)
    assert 0 <= health["engine"]["age_s"] < 5
    text = (await gateway.client.get("/metrics")).text
    for line in ("vllm:num_requests_running 1.0", "twinspark_gateway_engine_running_requests 1.0"):
        assert line in text
    gateway.engine.gate.set()
    await request
