"""Requests that wait for a slot: foreground before background, each kind in order of arrival."""

import itertools
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from twinspark_engine.request import Request
from twinspark_engine.scheduler.running import Delivery


@dataclass(frozen=True, slots=True, eq=False)
class WaitingRequest:
    """A request without a slot, new or yielded."""

    request: Request
    delivery: Delivery


class WaitingLine:
    """Iteration gives the order of admission."""

    def __init__(self) -> None:
        self._foreground: deque[WaitingRequest] = deque()
        self._background: deque[WaitingRequest] = deque()

    def __iter__(self) -> Iterator[WaitingRequest]:
        return itertools.chain(self._foreground, self._background)

    def __len__(self) -> int:
        return len(self._foreground) + len(self._background)

    def append(self, waiting: WaitingRequest) -> None:
        """Put a new request at the end of its kind."""
        self._queue_of(waiting).append(waiting)

    def put_back(self, waiting: WaitingRequest) -> None:
        """Put a request that yielded before all of its kind: those that waited meanwhile came after it."""
        self._queue_of(waiting).appendleft(waiting)

    def remove(self, waiting: WaitingRequest) -> None:
        """Take a request out. O(1) at the head of its kind."""
        self._queue_of(waiting).remove(waiting)

    def find(self, request_id: str) -> WaitingRequest | None:
        """The request of that name, if it waits."""
        return next((waiting for waiting in self if waiting.request.request_id == request_id), None)

    def clear(self) -> None:
        """Forget all."""
        self._foreground.clear()
        self._background.clear()

    def _queue_of(self, waiting: WaitingRequest) -> deque[WaitingRequest]:
        return self._background if waiting.request.is_background else self._foreground
