"""Streams of requests: outcomes reach their own stream, and an id is free only when its request is over."""

import asyncio

import pytest

from twinspark_engine.errors import RankLostError, RequestIdInUseError
from twinspark_engine.loop import RequestCancelled, RequestFailed
from twinspark_engine.request import FinishReason
from twinspark_engine.scheduler.events import Event, Finished, RequestEvent, TokensCommitted
from twinspark_engine.stats import EngineState
from twinspark_engine.streams import EventLoopListener, RequestStreams

FINISHED = Finished(FinishReason.LENGTH, None, 1, 1, 0, 0, 0, 0, 0)


def tokens(request_id: str, *ids: int) -> RequestEvent:
    return RequestEvent(request_id, TokensCommitted(ids, ()))


async def test_each_stream_gets_its_own_events_up_to_finished() -> None:
    streams = RequestStreams()
    a, b = streams.open("a"), streams.open("b")
    streams.deliver([tokens("a", 1), tokens("b", 2)])
    streams.deliver([RequestEvent("a", FINISHED), tokens("unknown", 3)])
    assert [event async for event in a] == [TokensCommitted((1,), ()), FINISHED]
    assert (a.has_ended, b.has_ended) == (True, False)


async def test_a_failed_request_gets_its_events_and_then_its_error() -> None:
    streams = RequestStreams()
    stream = streams.open("a")
    streams.deliver([tokens("a", 1), RequestFailed("a", RankLostError())])
    seen: list[Event] = []
    with pytest.raises(RankLostError):
        async for event in stream:
            seen.append(event)
    assert len(seen) == 1


async def test_an_id_is_taken_until_its_request_is_over() -> None:
    streams = RequestStreams()
    streams.open("a")
    with pytest.raises(RequestIdInUseError):
        streams.open("a")
    streams.deliver([RequestCancelled("a")])
    again = streams.open("a")
    streams.deliver([tokens("a", 1)])
    assert not again.has_ended


async def test_wait_empty_returns_when_the_last_request_is_over() -> None:
    streams = RequestStreams()
    await streams.wait_empty()
    streams.open("a")
    streams.open("b")
    streams.deliver([RequestCancelled("a")])
    assert not streams._empty.is_set()
    streams.fail_all(RankLostError())
    await streams.wait_empty()


async def test_a_lost_link_ends_serving_before_the_loop_knows_and_never_begins_it() -> None:
    health: list[bool] = []

    async def set_serving(serving: bool) -> None:
        health.append(serving)

    listener = EventLoopListener(RequestStreams(), set_serving)
    for reported, after_loss in ((EngineState.LOADING,) * 2, (EngineState.SERVING, EngineState.FORMING)):
        listener.on_state(reported)
        await asyncio.sleep(0.01)
        listener.on_link_lost()
        await asyncio.sleep(0.01)
        assert listener.state is after_loss
    assert health == [False, True, False]
