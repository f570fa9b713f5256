"""Without its grammar service a gateway refuses what needs one, and nothing else; what it is told of refusals."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from prometheus_client import CollectorRegistry

from support.free_ports import pick_free_ports
from twinspark.grammar.v1 import grammar_pb2 as pb
from twinspark.grammar.v1 import grammar_pb2_grpc
from twinspark_rpc import ListenSettings, RpcServer, ServiceError

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
HELLO = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 2}
TOOLS = [{"type": "function", "function": {"name": "f"}}]
STRICT = [{"type": "function", "function": {"name": "f", "strict": True}}]
CONSTRAINED: list[tuple[str, dict[str, Any]]] = [
    (CHAT, HELLO | {"response_format": {"type": "json_object"}}),
    (CHAT, HELLO | {"tools": TOOLS, "tool_choice": "required"}),
    (CHAT, HELLO | {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "f"}}}),
    (CHAT, HELLO | {"tools": STRICT}),
    (COMPLETIONS, {"prompt": "a", "guided_regex": "a"}),
]
FREE: list[tuple[str, dict[str, Any]]] = [
    (CHAT, HELLO),
    (CHAT, HELLO | {"response_format": {"type": "text"}}),
    (CHAT, HELLO | {"tools": TOOLS}),
    (CHAT, HELLO | {"tools": STRICT, "tool_choice": "none"}),
    (COMPLETIONS, {"prompt": "a"}),
]


async def check(gateway: Any, said: str, *, retry: bool) -> None:
    """Check that constrained requests are a 503 before any header of a stream, and that others are served."""
    gateway.engine.requests.clear()
    for path, body in CONSTRAINED:
        for stream in (False, True):
            response = await gateway.post(path, body | {"stream": stream})
            assert (response.status_code, response.json()["error"]["type"]) == (503, "server_error"), response.text
            assert said in response.json()["error"]["message"]
            assert ("retry-after" in response.headers) is retry
            assert (response.headers.get("x-should-retry") == "false") is not retry
    assert gateway.engine.requests == []
    for path, body in FREE:
        assert (await gateway.post(path, body)).status_code == 200


async def test_without_a_service_only_what_needs_one_is_refused(start_gateway: Any) -> None:
    gateway = await start_gateway()
    await check(gateway, "runs without a grammar service", retry=False)
    assert (await gateway.client.get("/health")).json()["grammar"] == {"state": None}
    assert "grammar_up" not in (await gateway.client.get("/metrics")).text


@pytest.mark.parametrize("mode", ["basic", "strict"])
async def test_a_service_that_is_down_is_told_and_health_stays_good(start_gateway: Any, mode: str) -> None:
    gateway = await start_gateway(grammar=f"127.0.0.1:{pick_free_ports(1)[0]}", health_mode=mode)
    await check(gateway, "the grammar service takes no calls", retry=True)
    response = await gateway.client.get("/health")
    assert (response.status_code, response.json()["grammar"]) == (200, {"state": "unavailable"})
    metrics = (await gateway.client.get("/metrics")).text
    assert "twinspark_gateway_grammar_up 0.0" in metrics
    assert f'grammar_compilations_total{{outcome="unavailable"}} {2.0 * len(CONSTRAINED)}' in metrics


class Refusing(grammar_pb2_grpc.GrammarServiceServicer):
    """A service whose every call fails in a given way; None: it never answers."""

    failure: Exception | None = None

    async def Compile(self, request: pb.CompileRequest, context: Any) -> pb.CompileResponse:
        """Fail."""
        if self.failure is None:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED)
        raise self.failure or AssertionError

    def Mask(self, request_iterator: Any, context: Any) -> AsyncIterator[pb.MaskResponse]:
        """Not asked by a gateway."""
        raise AssertionError

    async def GetStats(self, request: pb.GetStatsRequest, context: Any) -> pb.GetStatsResponse:
        """Say that calls are taken."""
        return pb.GetStatsResponse(serving=True)


class BusyError(ServiceError):
    """Too many wait."""

    REASON = "COMPILERS_BUSY"
    CODE = grpc.StatusCode.RESOURCE_EXHAUSTED


class BrokenError(ServiceError):
    """A defect."""

    REASON = "BROKEN"
    CODE = grpc.StatusCode.INTERNAL


@asynccontextmanager
async def serve(servicer: Refusing) -> AsyncIterator[str]:
    server = RpcServer("grammar", ListenSettings(port=0, drain_seconds=0), CollectorRegistry())
    server.add(grammar_pb2_grpc.add_GrammarServiceServicer_to_server, servicer, "twinspark.grammar.v1.GrammarService")
    await server.start()
    try:
        yield f"127.0.0.1:{server.port}"
    finally:
        await server.stop()


async def test_a_busy_a_slow_and_a_broken_service(start_gateway: Any) -> None:
    servicer = Refusing()
    async with serve(servicer) as address:
        gateway = await start_gateway(grammar=address)
        servicer.failure = BusyError("64 compilations wait already")
        await check(gateway, "too many grammars wait", retry=True)
        servicer.failure = None
        await check(gateway, "did not answer in time", retry=True)
        servicer.failure = BrokenError("secret")
        response = await gateway.post(*CONSTRAINED[0])
        assert response.status_code == 500
        assert "secret" not in response.text
        assert (await gateway.client.get("/health")).json()["grammar"] == {"state": "serving"}
