"""The client of a rank's grammar service: one Mask stream for each constrained request.

Streams live in the event loop; the step thread posts windows into it and waits for answers in a queue of its own, so
that the service computes the masks of a step while its forward runs.
"""

import asyncio
import queue
from collections.abc import Sequence
from typing import Any, cast

import grpc
import structlog

from twinspark.grammar.v1 import grammar_pb2 as pb
from twinspark.grammar.v1.grammar_pb2_grpc import GrammarServiceStub
from twinspark_engine.masks.source import Mask, Masks
from twinspark_engine.request import ConstraintFailure, Grammar
from twinspark_rpc import REQUEST_ID_KEY, RemoteStatus, read_status

log = structlog.get_logger()

Call = Any
"""grpc.aio.StreamStreamCall, whose stubs leave out reading and writing by hand."""

FAILURES = {
    grpc.StatusCode.INVALID_ARGUMENT: ConstraintFailure.REFUSED,
    grpc.StatusCode.FAILED_PRECONDITION: ConstraintFailure.STUCK,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ConstraintFailure.SLOW,
}
"""By the status with which a stream ends; every other one is a loss."""
WORD_BITS, WORD_BYTES = 32, 4
CLOSE_SECONDS = 5.0
"""Given to the service to end a stream that has nothing more to ask."""


class GrammarClient:
    """A MaskSource. Constructed and closed in the event loop's thread; `open` is called by the step thread."""

    def __init__(self, channel: grpc.aio.Channel, vocabulary_size: int) -> None:
        self._channel = channel
        self._mask: Any = GrammarServiceStub(channel).Mask
        self._vocabulary_size = vocabulary_size
        self._event_loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, request_id: str, grammar: Grammar, end_token_ids: Sequence[int]) -> "GrammarStream":
        """See MaskSource.open."""
        opened = pb.MaskOpen(
            grammar=pb.Grammar(
                handle=grammar.handle, kind=cast("pb.GrammarKind.ValueType", grammar.kind), source=grammar.source
            ),
            vocabulary_size=self._vocabulary_size,
            stop_token_ids=end_token_ids,
            start=pb.MASK_START_AFTER_THINKING if grammar.starts_after_thinking else pb.MASK_START_AT_ONCE,
        )
        stream = GrammarStream(request_id, opened, self._event_loop)
        self._event_loop.call_soon_threadsafe(self._start, stream)
        return stream

    async def close(self) -> None:
        """Give up every stream and the channel."""
        for task in self._tasks:
            task.cancel()
        await self._channel.close()

    def _start(self, stream: "GrammarStream") -> None:
        task = self._event_loop.create_task(stream.run(self._mask))
        stream.task = task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class GrammarStream:
    """A MaskStream. `post`, `wait` and `close` belong to the step thread, all else to the event loop's."""

    task: asyncio.Task[None]

    def __init__(self, request_id: str, opened: pb.MaskOpen, event_loop: asyncio.AbstractEventLoop) -> None:
        self._request_id = request_id
        self._opened = opened
        self._row_bytes = -(-opened.vocabulary_size // WORD_BITS) * WORD_BYTES
        self._event_loop = event_loop
        self._windows: asyncio.Queue[tuple[int, ...] | None] = asyncio.Queue()
        self._answers: queue.SimpleQueue[Masks] = queue.SimpleQueue()
        self._is_idle = False

    def post(self, committed: Sequence[int]) -> None:
        """See MaskStream.post."""
        self._event_loop.call_soon_threadsafe(self._windows.put_nowait, tuple(committed))

    def wait(self, seconds: float) -> Masks:
        """See MaskStream.wait."""
        try:
            return self._answers.get(timeout=max(seconds, 0.0))
        except queue.Empty:
            log.warning("masks_slow", request_id=self._request_id)
            return ConstraintFailure.SLOW

    def close(self) -> None:
        """See MaskStream.close."""
        self._event_loop.call_soon_threadsafe(self._end)

    async def run(self, mask: Call) -> None:
        """Carry the stream from its first message to its end."""
        is_fit = self._request_id.isascii() and self._request_id.isprintable()
        call: Call = mask(metadata=((REQUEST_ID_KEY, self._request_id),) if is_fit else ())
        try:
            await self._follow(call)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError, _BrokenStreamError):
            call.cancel()
            status = await _read_end(call)
            log.warning("masks_lost", request_id=self._request_id, code=status.code.name, reason=status.reason)
            self._answers.put(FAILURES.get(status.code, ConstraintFailure.LOST))
        except asyncio.CancelledError:  # closed here, or cancelled by the service
            self._answers.put(ConstraintFailure.LOST)
            raise
        else:
            await _finish(call)
        finally:
            call.cancel()

    async def _follow(self, call: Call) -> None:
        await call.write(pb.MaskRequest(open=self._opened))
        await _read(call)  # it is refused, or the grammar is there: nothing is sent before, which could hide the reason
        number = 0
        while (committed := await self._next_window()) is not None:
            window = pb.MaskWindow(round=number, committed_token_ids=committed)
            await call.write(pb.MaskRequest(window=window))
            self._answers.put(self._rows_of(await _read(call), number))
            number += 1

    async def _next_window(self) -> tuple[int, ...] | None:
        self._is_idle = True
        committed = await self._windows.get()
        self._is_idle = False
        return committed

    def _rows_of(self, answer: pb.MaskResponse, number: int) -> Sequence[Mask]:
        size = self._row_bytes
        masks = memoryview(answer.masks)
        if answer.round != number or len(masks) != size * (answer.num_allowed_drafts + 1):
            raise _BrokenStreamError
        return [masks[start : start + size] for start in range(0, len(masks), size)]

    def _end(self) -> None:
        """End the stream in order if nothing is under way, else at once."""
        if self._is_idle and self._windows.empty():
            self._windows.put_nowait(None)
        else:
            self.task.cancel()


class _BrokenStreamError(Exception):
    """The service ended the stream without a failure, or its answer is not one to what was asked."""


async def _read(call: Call) -> pb.MaskResponse:
    answer = await call.read()
    if not isinstance(answer, pb.MaskResponse):
        raise _BrokenStreamError
    return answer


async def _finish(call: Call) -> None:
    """Let the service end the stream by itself, so that it counts no cancelled call."""
    try:
        await call.done_writing()
        await asyncio.wait_for(call.read(), CLOSE_SECONDS)
    except (grpc.aio.AioRpcError, asyncio.InvalidStateError, TimeoutError):
        log.info("masks_not_closed")


async def _read_end(call: Call) -> RemoteStatus:
    """The status of a call that has ended."""
    trailers, details = await call.trailing_metadata(), await call.details()
    return read_status(grpc.aio.AioRpcError(await call.code(), grpc.aio.Metadata(), trailers, details))
