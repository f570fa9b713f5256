"""Rank 0's connection to one follower: the handshake, and one Follow stream for each epoch.

Lives in the event loop's thread; `lost` alone is read by other threads.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import grpc

from twinspark.engine.v1 import rank_pb2 as pb
from twinspark.engine.v1.rank_pb2_grpc import RankServiceStub
from twinspark_engine.errors import StaleEpochError
from twinspark_engine.ranks.transport import TransportError
from twinspark_rpc import read_status

if TYPE_CHECKING:  # named in the stubs only
    from twinspark.engine.v1.rank_pb2_grpc import RankServiceAsyncStub

Requests = asyncio.Queue[pb.FollowRequest | None]


class FollowerLink:
    """Plans go out in the order of post; the first failure ends the epoch."""

    def __init__(self, rank: int, channel: grpc.aio.Channel, on_lost: Callable[[], None]) -> None:
        self.rank = rank
        self.lost = "no stream is open"
        """Why the stream is unusable; empty while it works."""
        self._stub: RankServiceAsyncStub = RankServiceStub(channel)
        self._on_lost = on_lost
        self._requests: Requests = asyncio.Queue()
        self._responses: asyncio.Queue[pb.FollowResponse | None] = asyncio.Queue()
        self._reader: asyncio.Task[None] | None = None

    async def handshake(self, request: pb.HandshakeRequest, timeout_seconds: float) -> pb.HandshakeResponse:
        """Ask the follower to agree. Raises TransportError, or StaleEpochError with the epoch it has seen."""
        try:
            return await self._stub.Handshake(request, timeout=timeout_seconds)
        except grpc.aio.AioRpcError as error:
            status = read_status(error)
            if status.reason == StaleEpochError.REASON:
                raise StaleEpochError(request.epoch, int(status.metadata["newest_epoch"])) from error
            raise TransportError(f"rank {self.rank} does not answer: {status.code.name} {status.message}") from error

    async def open(self, epoch: int) -> None:
        """Open the stream of an epoch. Does not wait for the follower."""
        await self.close()
        self._requests, self._responses = asyncio.Queue(), asyncio.Queue()
        self.post(pb.FollowRequest(start=pb.StartEpoch(epoch=epoch)))
        self.lost = ""
        self._reader = asyncio.create_task(self._read(self._requests, self._responses))

    def post(self, request: pb.FollowRequest | None) -> None:
        """Send one message after those before; None ends the stream in order."""
        self._requests.put_nowait(request)

    async def next_response(self, timeout_seconds: float) -> pb.FollowResponse:
        """The follower's next message. Raises TransportError when the stream ends first or nothing comes."""
        try:
            response = await asyncio.wait_for(self._responses.get(), timeout_seconds)
        except TimeoutError:
            raise TransportError(f"rank {self.rank} was silent for {timeout_seconds:g} s") from None
        if response is None:
            raise TransportError(f"rank {self.rank}: {self.lost}")
        return response

    async def finish(self, timeout_seconds: float) -> None:
        """End the stream in order and wait until the follower has executed everything; give up after the timeout."""
        self.post(None)
        if self._reader is not None:
            await asyncio.wait({self._reader}, timeout=timeout_seconds)
        await self.close()

    async def close(self) -> None:
        """Cancel the stream, if one is open."""
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait({self._reader})
            self._reader = None

    async def _read(self, requests: Requests, responses: asyncio.Queue[pb.FollowResponse | None]) -> None:
        reason = "the stream was closed"
        try:
            async for response in self._stub.Follow(_until_none(requests)):
                responses.put_nowait(response)
            reason = "the follower ended the stream"
        except grpc.aio.AioRpcError as error:
            reason = f"the stream failed: {error.code().name} {error.details()}"
        finally:
            # Else gRPC's sender waits in the queue for good.
            requests.put_nowait(None)
            self.lost = reason
            responses.put_nowait(None)
            self._on_lost()


async def _until_none(requests: Requests) -> AsyncIterator[pb.FollowRequest]:
    while (request := await requests.get()) is not None:
        yield request
