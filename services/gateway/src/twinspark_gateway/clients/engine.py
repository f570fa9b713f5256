"""EngineService as the gateway calls it: deadlines, statuses as HTTP errors, streams that cancel themselves."""

from collections.abc import AsyncGenerator
from typing import Protocol

import grpc

from twinspark.engine.v1 import engine_pb2 as pb
from twinspark.engine.v1 import engine_pb2_grpc
from twinspark_gateway.clients.running_calls import RunningCalls
from twinspark_gateway.convert import (
    event_from_proto,
    generation_to_proto,
    memory_from_proto,
    model_from_proto,
    stats_from_proto,
)
from twinspark_gateway.errors import ApiError, from_status, grammar_unavailable, internal_failure
from twinspark_gateway.generation import EngineModel, EngineStats, Event, Finished, Generation, RankMemory
from twinspark_rpc import ChannelSettings, open_channel, read_status, request_metadata


class Generator(Protocol):
    """Anything that runs generations; the engine's client is one."""

    def generate(self, generation: Generation) -> AsyncGenerator[Event, None]:
        """Run one generation. Ends after Finished. Raises ApiError. Closing the iterator cancels the request."""
        ...


class EngineClient:
    """One channel to the engine. Used from the event loop only; it connects when first called."""

    def __init__(
        self, address: str, settings: ChannelSettings, *, timeout_seconds: float, stall_seconds: float
    ) -> None:
        self.calls = RunningCalls(stall_seconds)
        self._channel = open_channel(address, settings)
        self._stub: engine_pb2_grpc.EngineServiceAsyncStub = engine_pb2_grpc.EngineServiceStub(self._channel)
        self._timeout = timeout_seconds

    async def close(self) -> None:
        """Close the channel; running calls are cancelled."""
        await self._channel.close()

    async def describe(self) -> EngineModel:
        """Ask for the engine's description. Raises ApiError."""
        try:
            return model_from_proto(await self._stub.Describe(pb.DescribeRequest(), timeout=self._timeout))
        except grpc.aio.AioRpcError as error:
            raise _refusal(error) from error

    async def get_stats(self) -> EngineStats:
        """Ask for gauges and counters. Raises ApiError."""
        try:
            return stats_from_proto(await self._stub.GetStats(pb.GetStatsRequest(), timeout=self._timeout))
        except grpc.aio.AioRpcError as error:
            raise _refusal(error) from error

    async def get_memory(self) -> list[RankMemory]:
        """Ask for every rank's account of memory: it is taken in the next step. Raises ApiError."""
        try:
            return memory_from_proto(await self._stub.GetMemory(pb.GetMemoryRequest(), timeout=self._timeout))
        except grpc.aio.AioRpcError as error:
            raise _refusal(error) from error

    async def generate(self, generation: Generation) -> AsyncGenerator[Event, None]:
        """Run one generation, as Generator says."""
        # The id of the HTTP request, which is in every log line here; the call's own is in the message.
        call = self._stub.Generate(generation_to_proto(generation), metadata=request_metadata())
        is_finished = False
        with self.calls.follow(generation) as note:
            try:
                async for response in call:
                    event = event_from_proto(response)
                    if event is not None:
                        note(event)
                        is_finished = is_finished or isinstance(event, Finished)
                        yield event
            except grpc.aio.AioRpcError as error:
                raise _refusal(error) from error
            finally:
                # Without effect on a call that has ended.
                call.cancel()
        if not is_finished:
            raise internal_failure()


def _refusal(error: grpc.aio.AioRpcError) -> ApiError:
    status = read_status(error)
    if status.code is grpc.StatusCode.UNAVAILABLE and status.reason.startswith("GRAMMAR_"):
        return grammar_unavailable(status.message.removeprefix("grammar: "), retryable=status.retryable)
    # The engine names fields by their path in its own messages; the last part is the API's name.
    field = status.metadata.get("field")
    param = field.rpartition(".")[2] if field else None
    return from_status(status.code, status.message, param, retryable=status.retryable)
