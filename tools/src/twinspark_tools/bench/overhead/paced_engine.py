"""`python -m twinspark_tools.bench.overhead.paced_engine`: an EngineService that sends tokens at a pace.

It computes nothing: one token a message, each at its time after the stream's first; without a pace as fast as they are
taken. SIGTERM ends it; the times of all sends are then in its file, as JSON: {HTTP request id: [seconds]}, on the clock
of time.monotonic, which all processes of a machine share.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

import structlog
import typer
from prometheus_client import CollectorRegistry

from twinspark.engine.v1 import engine_pb2 as pb
from twinspark.engine.v1 import engine_pb2_grpc
from twinspark_rpc import ListenSettings, RpcServer, configure_logging

SERVICE = "twinspark.engine.v1.EngineService"
CONTEXT = 1 << 20


class PacedEngine(engine_pb2_grpc.EngineServiceServicer):
    """Says the same few tokens again and again."""

    def __init__(self, token_ids: list[int], period_seconds: float) -> None:
        self._token_ids = token_ids
        self._period_seconds = period_seconds
        self.sent: dict[str, list[float]] = {}

    async def Describe(self, request: pb.DescribeRequest, context: Any) -> pb.DescribeResponse:  # noqa: N802
        """Describe a model with room for any run."""
        return pb.DescribeResponse(
            context_length=CONTEXT,
            vocabulary_size=1 << 20,
            num_slots=1024,
            world_size=1,
            fingerprint="paced",
            max_top_logprobs=20,
        )

    async def GetStats(self, request: pb.GetStatsRequest, context: Any) -> pb.GetStatsResponse:  # noqa: N802
        """Say that requests are taken."""
        return pb.GetStatsResponse(state=pb.ENGINE_STATE_SERVING, num_slots=1024, epoch=1)

    async def GetMemory(self, request: pb.GetMemoryRequest, context: Any) -> pb.GetMemoryResponse:  # noqa: N802
        """Say nothing of memory."""
        return pb.GetMemoryResponse()

    async def Generate(self, request: pb.GenerateRequest, context: Any) -> AsyncIterator[pb.GenerateResponse]:  # noqa: N802
        """Send max_tokens tokens."""
        request_id = str(structlog.contextvars.get_contextvars()["request_id"])
        times = self.sent.setdefault(request_id, [])
        yield pb.GenerateResponse(admitted=pb.Admitted(seed=1))
        started, count = time.monotonic(), request.limits.max_tokens
        for number in range(count):
            await asyncio.sleep(max(0.0, started + number * self._period_seconds - time.monotonic()))
            step = pb.Step(token_ids=[self._token_ids[number % len(self._token_ids)]])
            times.append(time.monotonic())
            yield pb.GenerateResponse(step=step)
        usage = pb.Usage(prompt_tokens=len(request.prompt_token_ids), output_tokens=count)
        yield pb.GenerateResponse(finished=pb.Finished(reason=pb.FINISH_REASON_LENGTH, usage=usage))


def main(
    port: Annotated[int, typer.Option(help="Port on loopback.")],
    tokens: Annotated[str, typer.Option(help="Token ids to say, separated by commas.")],
    rate: Annotated[float, typer.Option(min=0, help="Tokens a second of each stream; 0: no pace.")],
    times: Annotated[Path, typer.Option(help="File for the times of the sends.")],
) -> None:
    """Serve until SIGTERM."""
    configure_logging("paced_engine", "warning")
    engine = PacedEngine([int(token) for token in tokens.split(",")], 1 / rate if rate else 0.0)
    asyncio.run(_serve(engine, port))
    times.write_text(json.dumps(engine.sent))


async def _serve(engine: PacedEngine, port: int) -> None:
    server = RpcServer("engine", ListenSettings(port=port, drain_seconds=0), CollectorRegistry())
    server.add(engine_pb2_grpc.add_EngineServiceServicer_to_server, engine, SERVICE)
    await server.start()
    await server.set_serving(True)
    await server.run_until_signal()


if __name__ == "__main__":
    typer.run(main)
