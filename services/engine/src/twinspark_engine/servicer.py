"""EngineService: converts, asks the loop, converts back."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import grpc

from twinspark.engine.v1 import engine_pb2 as pb
from twinspark.engine.v1.engine_pb2_grpc import EngineServiceServicer
from twinspark_engine.convert import RequestBounds, event_to_proto, request_from_proto
from twinspark_engine.errors import EngineDrainingError, EngineLoadingError, RankLostError
from twinspark_engine.loop import Cancel, EngineLoop, MeasureMemory, Submit
from twinspark_engine.memory import MemoryAccount
from twinspark_engine.ranks.convert import memory_to_proto
from twinspark_engine.stats import EngineState
from twinspark_engine.streams import EventLoopListener, RequestStreams

STATES = {
    EngineState.LOADING: pb.ENGINE_STATE_LOADING,
    EngineState.FORMING: pb.ENGINE_STATE_FORMING,
    EngineState.SERVING: pb.ENGINE_STATE_SERVING,
    EngineState.DRAINING: pb.ENGINE_STATE_DRAINING,
}


@dataclass(frozen=True, slots=True)
class EngineDescription:
    """What never changes while the process runs."""

    context_length: int
    vocabulary_size: int
    eos_token_ids: tuple[int, ...]
    num_slots: int
    world_size: int
    fingerprint: str
    checkpoint_hash: str
    max_top_logprobs: int
    block_tokens: int
    pool_tokens: int
    chunk_tokens_alone: int
    chunk_tokens_beside_decoders: int
    short_prompt_tokens: int


class EngineServicer(EngineServiceServicer):
    """Called by the event loop."""

    def __init__(
        self,
        loop: EngineLoop,
        streams: RequestStreams,
        listener: EventLoopListener,
        description: EngineDescription,
        bounds: RequestBounds,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loop = loop
        self._listener = listener
        self._is_draining = False
        self._streams = streams
        self._description = description
        self._bounds = bounds
        self._clock = clock

    async def Generate(
        self, request: pb.GenerateRequest, context: grpc.aio.ServicerContext[pb.GenerateRequest, pb.GenerateResponse]
    ) -> AsyncIterator[pb.GenerateResponse]:
        """Run one request."""
        arrived_at = self._clock()
        accepted = request_from_proto(request, self._bounds)
        self._check_serving()
        stream = self._streams.open(accepted.request_id)
        self._loop.post(Submit(accepted, arrived_at))
        try:
            async for event in stream:
                yield event_to_proto(event)
        finally:
            if not stream.has_ended:
                self._loop.post(Cancel(accepted.request_id))

    async def Describe(
        self, request: pb.DescribeRequest, context: grpc.aio.ServicerContext[pb.DescribeRequest, pb.DescribeResponse]
    ) -> pb.DescribeResponse:
        """Answer the description."""
        description = self._description
        return pb.DescribeResponse(
            context_length=description.context_length,
            vocabulary_size=description.vocabulary_size,
            eos_token_ids=description.eos_token_ids,
            num_slots=description.num_slots,
            world_size=description.world_size,
            fingerprint=description.fingerprint,
            checkpoint_hash=description.checkpoint_hash,
            max_top_logprobs=description.max_top_logprobs,
            block_tokens=description.block_tokens,
            pool_tokens=description.pool_tokens,
            chunk_tokens_alone=description.chunk_tokens_alone,
            chunk_tokens_beside_decoders=description.chunk_tokens_beside_decoders,
            short_prompt_tokens=description.short_prompt_tokens,
        )

    async def GetStats(
        self, request: pb.GetStatsRequest, context: grpc.aio.ServicerContext[pb.GetStatsRequest, pb.GetStatsResponse]
    ) -> pb.GetStatsResponse:
        """Answer the counters."""
        stats = self._loop.stats
        last_token_at = stats.last_token_at
        return pb.GetStatsResponse(
            state=STATES[self._state],
            num_slots=self._description.num_slots,
            num_running=stats.num_running,
            num_waiting=stats.num_waiting,
            num_prefilling=stats.num_prefilling,
            num_blocks=stats.num_blocks,
            num_blocks_used=stats.num_used_blocks,
            num_asyncio_tasks=len(asyncio.all_tasks()),
            requests_total=stats.requests_total,
            requests_failed_total=stats.requests_failed_total,
            requests_cancelled_total=stats.requests_cancelled_total,
            requests_yielded_total=stats.requests_yielded_total,
            prompt_tokens_total=stats.prompt_tokens_total,
            output_tokens_total=stats.output_tokens_total,
            steps_total=stats.steps_total,
            prefill_us_total=stats.prefill_us_total,
            decode_us_total=stats.decode_us_total,
            mask_wait_us_total=stats.mask_wait_us_total,
            masked_rows_total=stats.masked_rows_total,
            epoch=stats.epochs_total,
            slot_admissions_total=stats.slot_admissions_total,
            quiet_ms=0 if last_token_at is None else max(0, int((self._clock() - last_token_at) * 1000)),
        )

    async def GetMemory(
        self, request: pb.GetMemoryRequest, context: grpc.aio.ServicerContext[pb.GetMemoryRequest, pb.GetMemoryResponse]
    ) -> pb.GetMemoryResponse:
        """Ask every rank in the next step."""
        self._check_serving()
        event_loop = asyncio.get_running_loop()
        answered: asyncio.Future[list[MemoryAccount] | None] = event_loop.create_future()

        def answer(accounts: list[MemoryAccount] | None) -> None:
            event_loop.call_soon_threadsafe(_resolve, answered, accounts)

        self._loop.post(MeasureMemory(answer))
        accounts = await answered
        if accounts is None:
            raise RankLostError
        return pb.GetMemoryResponse(ranks=[memory_to_proto(account) for account in accounts])

    async def drain(self) -> None:
        """Refuse new requests and return when the running ones have ended."""
        self._is_draining = True
        await self._streams.wait_empty()

    @property
    def _state(self) -> EngineState:
        return EngineState.DRAINING if self._is_draining else self._listener.state

    def _check_serving(self) -> None:
        match self._state:
            case EngineState.LOADING:
                raise EngineLoadingError
            case EngineState.FORMING:
                raise RankLostError
            case EngineState.DRAINING:
                raise EngineDrainingError


def _resolve(answered: "asyncio.Future[list[MemoryAccount] | None]", accounts: list[MemoryAccount] | None) -> None:
    if not answered.done():
        answered.set_result(accounts)
