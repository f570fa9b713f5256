"""The open Generate streams of rank 0: outcomes go in from the loop's thread, each stream's handler takes its own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from twinspark_engine.errors import RequestIdInUseError
from twinspark_engine.loop import Outcome, RequestCancelled, RequestFailed
from twinspark_engine.scheduler.events import Event, Finished
from twinspark_engine.stats import EngineState
from twinspark_rpc import ServiceError


class RequestStream:
    """Events of one request, in order. Used in the event loop's thread."""

    def __init__(self) -> None:
        self.has_ended = False
        self._queue: asyncio.Queue[Event | ServiceError] = asyncio.Queue()

    def put(self, item: Event | ServiceError) -> None:
        """Add what happened."""
        self._queue.put_nowait(item)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Events up to Finished. Raises the ServiceError with which the request ended instead."""
        while True:
            item = await self._queue.get()
            if isinstance(item, ServiceError):
                raise item
            yield item
            if isinstance(item, Finished):
                return


class RequestStreams:
    """All streams by request_id. An id is taken until the loop has said that its request is over."""

    def __init__(self) -> None:
        self._streams: dict[str, RequestStream] = {}
        self._empty = asyncio.Event()
        self._empty.set()

    def open(self, request_id: str) -> RequestStream:
        """A stream for a request that is about to be submitted. Raises RequestIdInUseError."""
        if request_id in self._streams:
            raise RequestIdInUseError
        stream = self._streams[request_id] = RequestStream()
        self._empty.clear()
        return stream

    def deliver(self, outcomes: Sequence[Outcome]) -> None:
        """Hand out what the loop reported."""
        for outcome in outcomes:
            stream = self._streams.get(outcome.request_id)
            if stream is None:
                continue
            if isinstance(outcome, RequestCancelled):
                self._end(outcome.request_id, stream)
            elif isinstance(outcome, RequestFailed):
                self._end(outcome.request_id, stream)
                stream.put(outcome.error)
            else:
                if isinstance(outcome.event, Finished):
                    self._end(outcome.request_id, stream)
                stream.put(outcome.event)

    def fail_all(self, error: ServiceError) -> None:
        """End every stream; the loop is gone and will not."""
        self.deliver([RequestFailed(request_id, error) for request_id in list(self._streams)])

    async def wait_empty(self) -> None:
        """Return when every request is over."""
        await self._empty.wait()

    def _end(self, request_id: str, stream: RequestStream) -> None:
        stream.has_ended = True
        del self._streams[request_id]
        if not self._streams:
            self._empty.set()


class EventLoopListener:
    """The loop's Listener: carries outcomes and states over to the event loop's thread, one call for each."""

    def __init__(self, streams: RequestStreams, set_serving: Callable[[bool], Awaitable[None]]) -> None:
        self.state = EngineState.LOADING
        """Last state that the loop reported. Read in the event loop's thread."""
        self._streams = streams
        self._set_serving = set_serving
        self._event_loop = asyncio.get_running_loop()

    def on_outcomes(self, outcomes: Sequence[Outcome]) -> None:
        """See Listener.on_outcomes."""
        self._event_loop.call_soon_threadsafe(self._streams.deliver, outcomes)

    def on_state(self, state: EngineState) -> None:
        """See Listener.on_state."""
        asyncio.run_coroutine_threadsafe(self._change_state(state), self._event_loop)

    def on_link_lost(self) -> None:
        """Refuse requests from now on: the loop may wait in an exchange for as long as the timeout before it knows.

        From the event loop's thread. The loop then loses the group, and reports it again when it is formed.
        """
        if self.state is EngineState.SERVING:
            self.on_state(EngineState.FORMING)

    async def _change_state(self, state: EngineState) -> None:
        self.state = state
        await self._set_serving(state is EngineState.SERVING)
