"""A client of EngineService for tests: whole replies as data, whatever way they end."""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from support.waiting import PATIENCE_SECONDS
from twinspark.engine.v1 import engine_pb2 as pb
from twinspark.engine.v1.engine_pb2_grpc import EngineServiceStub
from twinspark_rpc import ChannelSettings, RemoteStatus, open_channel, read_status

SERVING = health_pb2.HealthCheckResponse.SERVING
PROBE_SECONDS = 1.0
"""A rank that is stopped answers no probe of its health."""


class _Settings(ChannelSettings):
    pass


@dataclass
class Reply:
    """What a Generate stream held; status is None if it ended with Finished."""

    request_id: str
    responses: list[pb.GenerateResponse] = field(default_factory=list)
    status: RemoteStatus | None = None
    ended_at: float = 0.0

    @property
    def tokens(self) -> list[int]:
        return [token for r in self.responses if r.HasField("step") for token in r.step.token_ids]

    @property
    def finished(self) -> pb.Finished | None:
        found = [r.finished for r in self.responses if r.HasField("finished")]
        assert len(found) <= 1
        return found[0] if found else None

    @property
    def code(self) -> str:
        return "OK" if self.status is None else self.status.code.name


def build_message(
    request_id: str, num_prompt_tokens: int = 5, max_tokens: int = 8, **fields: Any
) -> pb.GenerateRequest:
    prompt = [(sum(request_id.encode()) * 31 + i * 7) % 2000 + 1 for i in range(num_prompt_tokens)]
    limits = pb.Limits(max_tokens=max_tokens, ignore_eos=True)
    return pb.GenerateRequest(request_id=request_id, prompt_token_ids=prompt, limits=limits, **fields)


class EngineClient:
    """One channel; its keepalive gives up a silent engine after `silence_seconds`."""

    def __init__(self, address: str, silence_seconds: float = PATIENCE_SECONDS) -> None:
        self.channel = open_channel(
            address, _Settings(keepalive_timeout_seconds=silence_seconds), max_backoff_seconds=0.2
        )
        self.stub: Any = EngineServiceStub(self.channel)
        self._health: Any = health_pb2_grpc.HealthStub(self.channel)

    async def close(self) -> None:
        await self.channel.close()

    async def generate(self, message: pb.GenerateRequest, reply: Reply | None = None) -> Reply:
        reply = reply or Reply(message.request_id)
        try:
            async for response in self.stub.Generate(message):
                reply.responses.append(response)
        except grpc.aio.AioRpcError as error:
            reply.status = read_status(error)
        reply.ended_at = time.monotonic()
        return reply

    async def health(self) -> str:
        try:
            answer = await self._health.Check(health_pb2.HealthCheckRequest(service=""), timeout=PROBE_SECONDS)
        except grpc.aio.AioRpcError as error:
            return str(error.code().name)
        return "SERVING" if answer.status == SERVING else "NOT_SERVING"

    async def wait_health(self, wanted: str, timeout: float = PATIENCE_SECONDS) -> None:
        deadline = time.monotonic() + timeout
        while (seen := await self.health()) != wanted:
            assert time.monotonic() < deadline, f"health is {seen}, not {wanted}, after {timeout:g} s"
            await asyncio.sleep(0.05)

    async def stats(self) -> pb.GetStatsResponse:
        answer: pb.GetStatsResponse = await self.stub.GetStats(pb.GetStatsRequest(), timeout=PATIENCE_SECONDS)
        return answer

    async def wait_stats(self, **values: int) -> None:
        """Until fields of GetStats have these values."""
        stats = await self.stats()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while any(getattr(stats, name) != value for name, value in values.items()):
            assert time.monotonic() < deadline, f"{values} never came: {stats}"
            await asyncio.sleep(0.01)
            stats = await self.stats()
