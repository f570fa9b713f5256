"""RankService of a follower: agrees or refuses, and hands plans to the follower's thread."""

import asyncio
from collections.abc import AsyncIterator, Callable

import grpc
import structlog

from twinspark.engine.v1 import rank_pb2 as pb
from twinspark.engine.v1.rank_pb2_grpc import RankServiceServicer
from twinspark_engine.errors import FollowRefusedError, RankLostError, StaleEpochError
from twinspark_engine.ranks.convert import differences_to_proto, plan_from_proto, values_from_proto
from twinspark_engine.ranks.follower import EndEpoch, Execute, Follower, JoinEpoch, Load
from twinspark_engine.ranks.handshake import AgreedValues, Difference, find_differences, log_differences
from twinspark_rpc import ServiceError

log = structlog.get_logger()


class FollowAnswers:
    """The way back of one Follow stream: the follower's thread puts, the stream's handler takes."""

    def __init__(self) -> None:
        self._event_loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[pb.FollowResponse | ServiceError | None] = asyncio.Queue()

    def put(self, answer: pb.FollowResponse | ServiceError | None) -> None:
        """Send a message, or end the stream with a status (None: OK). From any thread."""
        self._event_loop.call_soon_threadsafe(self._queue.put_nowait, answer)

    async def __aiter__(self) -> AsyncIterator[pb.FollowResponse]:
        while (answer := await self._queue.get()) is not None:
            if isinstance(answer, ServiceError):
                raise answer
            yield answer


class RankServicer(RankServiceServicer):
    """Called by the event loop. One epoch at a time: a newer handshake ends the one before."""

    def __init__(
        self, rank: int, values: AgreedValues, follower: Follower, on_refused: Callable[[list[Difference]], None]
    ) -> None:
        self._rank = rank
        self._values = values
        self._follower = follower
        self._on_refused = on_refused
        self._agreed: pb.HandshakeRequest | None = None
        self._newest_epoch = 0
        self._stream: FollowAnswers | None = None

    async def Handshake(
        self,
        request: pb.HandshakeRequest,
        context: grpc.aio.ServicerContext[pb.HandshakeRequest, pb.HandshakeResponse],
    ) -> pb.HandshakeResponse:
        """Compare, start loading if all is equal, stop the process if not."""
        if request.epoch <= self._newest_epoch:
            raise StaleEpochError(request.epoch, self._newest_epoch)
        differences = find_differences(AgreedValues(*values_from_proto(request)), self._values)
        if request.rank != self._rank:
            differences.append(Difference("rank", str(request.rank), str(self._rank)))
        if differences:
            log_differences(differences, self._rank)
            self._on_refused(differences)
        else:
            self._newest_epoch, self._agreed = request.epoch, request
            if self._stream is not None:
                self._stream.put(RankLostError())
            self._follower.post(Load())
        return pb.HandshakeResponse(
            settings=self._values.settings,
            hashes=self._values.hashes,
            differences=differences_to_proto(differences),
        )

    async def Follow(
        self,
        request_iterator: AsyncIterator[pb.FollowRequest],
        context: grpc.aio.ServicerContext[pb.FollowRequest, pb.FollowResponse],
    ) -> AsyncIterator[pb.FollowResponse]:
        """Carry the plans of one epoch."""
        agreed = self._agreed
        first = await anext(aiter(request_iterator), None)
        if agreed is None or first is None or first.start.epoch != agreed.epoch:
            raise FollowRefusedError
        answers = FollowAnswers()
        self._stream = answers
        self._follower.post(JoinEpoch(agreed.epoch, agreed.store_host, agreed.store_port, answers))
        reader = asyncio.create_task(self._read(request_iterator, agreed.epoch))
        try:
            async for response in answers:
                yield response
        finally:
            reader.cancel()
            self._follower.post(EndEpoch(agreed.epoch, None))
            if self._stream is answers:
                self._stream = None

    async def _read(self, requests: AsyncIterator[pb.FollowRequest], epoch: int) -> None:
        """Pass plans on until rank 0 ends the stream; what was sent before is executed before the stream ends."""
        async for request in requests:
            self._follower.post(Execute(plan_from_proto(request.plan)))
        self._follower.post(EndEpoch(epoch, "rank 0 ended the stream"))
