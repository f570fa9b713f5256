"""Rank 0's connection to a follower, against a follower that ends every stream."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import grpc
import pytest

from support.waiting import PATIENCE_SECONDS, eventually
from twinspark.engine.v1 import rank_pb2 as pb
from twinspark.engine.v1.rank_pb2_grpc import RankServiceServicer, add_RankServiceServicer_to_server
from twinspark_engine.ranks.link import FollowerLink
from twinspark_engine.ranks.transport import TransportError
from twinspark_rpc import ChannelSettings, open_channel


class EndingFollower(RankServiceServicer):
    """Says Ready and ends the stream with a status."""

    async def Handshake(
        self,
        request: pb.HandshakeRequest,
        context: grpc.aio.ServicerContext[pb.HandshakeRequest, pb.HandshakeResponse],
    ) -> pb.HandshakeResponse:
        """See RankService."""
        return pb.HandshakeResponse()

    async def Follow(
        self,
        request_iterator: AsyncIterator[pb.FollowRequest],
        context: grpc.aio.ServicerContext[pb.FollowRequest, pb.FollowResponse],
    ) -> AsyncIterator[pb.FollowResponse]:
        """See RankService."""
        first = await anext(aiter(request_iterator))
        yield pb.FollowResponse(ready=pb.Ready(epoch=first.start.epoch))
        await context.abort(grpc.StatusCode.UNAVAILABLE, "the group is lost")


@pytest.fixture
async def link() -> AsyncIterator[FollowerLink]:
    """A link to that follower."""
    server = grpc.aio.server()
    add_RankServiceServicer_to_server(EndingFollower(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    channel = open_channel(f"127.0.0.1:{port}", ChannelSettings())
    yield FollowerLink(1, channel, lambda: None)
    await channel.close()
    await server.stop(0)


def has_no_sender_since(before: set[asyncio.Task[Any]]) -> bool:
    return not any("_consume_request_iterator" in repr(task) for task in asyncio.all_tasks() - before)


async def test_a_stream_that_the_follower_ends_is_lost_and_leaves_no_task(link: FollowerLink) -> None:
    for epoch in (1, 2):
        before = asyncio.all_tasks()
        await link.open(epoch)
        assert (await link.next_response(PATIENCE_SECONDS)).ready.epoch == epoch
        with pytest.raises(TransportError, match="the group is lost"):
            await link.next_response(PATIENCE_SECONDS)
        assert "UNAVAILABLE" in link.lost
        await eventually(partial(has_no_sender_since, before), "its sender has ended")
    await link.close()
