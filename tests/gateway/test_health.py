"""What /health says of requests, and what a stall does in each mode."""

import asyncio
from typing import Any

import pytest

from fakes.engine import FakeEngine, RankLostError
from support.waiting import PATIENCE_SECONDS, eventually
from twinspark_gateway.clients.running_calls import RunningCalls, Stall
from twinspark_gateway.generation import Admitted, Generation, Step

CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 3, "ignore_eos": True}
ADMITTED = Admitted(num_cached_tokens=0, seed=1, queue_ms=0)


async def wait_for_stall(gateway: Any) -> Any:
    """Wait until /health lists a stall; give the response."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (response := await gateway.client.get("/health")).json()["stalled"]:
            await asyncio.sleep(0.01)
        return response


@pytest.mark.parametrize("mode", ["basic", "strict"])
async def test_a_stall_is_listed_and_only_strict_health_acts_on_it(start_gateway: Any, mode: str) -> None:
    gateway = await start_gateway(stall_seconds=0.2, health_mode=mode)
    gateway.engine.gate.clear()
    request = asyncio.create_task(gateway.post(CHAT, HELLO))
    response = await wait_for_stall(gateway)
    health = response.json()
    assert (health["mode"], health["inflight"], len(health["stalled"])) == (mode, 1, 1)
    stalled = health["stalled"][0]
    assert stalled["quiet_s"] >= stalled["allowed_s"] >= 0.2, "rounded, so they may look alike"
    assert health["oldest_s"] > 0
    assert "twinspark_gateway_stalled_requests 1.0" in (await gateway.client.get("/metrics")).text
    another = asyncio.create_task(gateway.post(CHAT, HELLO))
    if mode == "basic":
        assert (response.status_code, health["ok"]) == (200, True)
        await eventually(lambda: len(gateway.engine.requests) == 2, "another request is taken")
    else:
        assert (response.status_code, health["ok"]) == (503, False)
        refused = await another
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert len(gateway.engine.requests) == 1
    gateway.engine.gate.set()
    assert (await request).status_code == 200
    await another
    response = await gateway.client.get("/health")
    assert (response.status_code, response.json()["stalled"], response.json()["oldest_s"]) == (200, [], 0)
    assert (await gateway.post(CHAT, HELLO)).status_code == 200


async def test_health_counts_requests_and_failures(start_gateway: Any) -> None:
    gateway = await start_gateway(FakeEngine())
    assert (await gateway.post(CHAT, HELLO)).status_code == 200
    assert (await gateway.post(CHAT, HELLO | {"stop": 5})).status_code == 400
    gateway.engine.failure = RankLostError("x")
    assert (await gateway.post(CHAT, HELLO)).status_code == 503
    await eventually(lambda: not gateway.engine.running, "both ended")
    health = (await gateway.client.get("/health")).json()
    assert (health["requests"], health["errors"], health["inflight"]) == (2, 1, 0)
    assert health["idle_s"] > 0


async def test_metrics_are_in_the_format_that_every_scraper_reads(gateway: Any) -> None:
    response = await gateway.client.get("/metrics")
    assert response.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_a_long_prompt_is_no_stall_but_silence_after_its_first_token_is() -> None:
    now = 0.0
    calls = RunningCalls(10, clock=lambda: now)
    with calls.follow(Generation("a", [1] * 2000, 5)) as note:
        note(ADMITTED)
        now = 20.0
        assert calls.find_stalls() == []
        now = 20.5
        assert calls.find_stalls() == [Stall(2000, 20.5, 20)]
        note(Step([5]))
        now = 30.5
        assert calls.find_stalls() == []
        now = 31.0
        assert calls.find_stalls() == [Stall(2000, 10.5, 10)]
        assert (calls.oldest_seconds, calls.idle_seconds) == (31, 0)
    now = 33.0
    assert (calls.find_stalls(), calls.oldest_seconds, calls.idle_seconds) == ([], 0, 2)


@pytest.mark.parametrize(("is_background", "is_admitted"), [(False, False), (True, False), (True, True)])
def test_a_request_without_a_slot_may_wait_as_long_as_the_engine_works(is_background: bool, is_admitted: bool) -> None:
    now = 0.0
    calls = RunningCalls(10, clock=lambda: now)
    with calls.follow(Generation("a", [1], 5, is_background=is_background)) as note:
        if is_admitted:
            note(ADMITTED)
            note(Step([5]))
        for second in range(100):
            now = float(second)
            calls.note_progress()
            assert calls.find_stalls() == []
        now += 11
        assert len(calls.find_stalls()) == 1
