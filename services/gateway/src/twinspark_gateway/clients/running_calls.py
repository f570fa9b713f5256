"""The Generate calls that run, and which of them the engine leaves without a token for too long."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from twinspark_gateway.generation import Event, Finished, Generation, Step

# The slowest prefill that is no stall.
LEAST_PREFILL_RATE = 200


@dataclass(slots=True)
class RunningCall:
    """One call. Times are the clock's, in seconds."""

    num_prompt_tokens: int
    # It may have to give its slot up, and is silent then.
    is_background: bool
    started: float
    # Of the last message; None before the first: the request waits for its slot.
    heard_at: float | None = None
    # From the first token on, the prompt is no excuse any more.
    is_decoding: bool = False


@dataclass(frozen=True, slots=True)
class Stall:
    """A call without a token for longer than it is allowed."""

    num_prompt_tokens: int
    quiet_seconds: float
    allowed_seconds: float


class RunningCalls:
    """Follows the calls of one engine. Used from the event loop."""

    def __init__(self, stall_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._stall_seconds = stall_seconds
        self._clock = clock
        self._calls: list[RunningCall] = []
        self._ended_at = clock()
        self._progressed_at = clock()

    @contextmanager
    def follow(self, generation: Generation) -> Iterator[Callable[[Event], None]]:
        """Count a call while the context is open; its messages are told to what it gives."""
        call = RunningCall(len(generation.prompt_token_ids), generation.is_background, self._clock())
        self._calls.append(call)

        def note(event: Event) -> None:
            call.heard_at = self._clock()
            call.is_decoding = call.is_decoding or isinstance(event, Step | Finished)

        try:
            yield note
        finally:
            self._calls.remove(call)
            self._ended_at = self._clock()

    def note_progress(self) -> None:
        """Note that the engine did a step, for anyone: what waits for a slot may go on waiting."""
        self._progressed_at = self._clock()

    @property
    def oldest_seconds(self) -> float:
        """Age of the oldest call; 0 without any."""
        return self._clock() - self._calls[0].started if self._calls else 0.0

    @property
    def idle_seconds(self) -> float:
        """Time since the last call ended; 0 while one runs."""
        return 0.0 if self._calls else self._clock() - self._ended_at

    def find_stalls(self) -> list[Stall]:
        """Give the calls that stall, the oldest first."""
        stalls = []
        for call in self._calls:
            # A request without a slot hears nothing, however well the engine works for others.
            since = call.heard_at if call.heard_at is not None else call.started
            if call.heard_at is None or call.is_background:
                since = max(since, self._progressed_at)
            prompt = 0 if call.is_decoding else call.num_prompt_tokens
            quiet, allowed = self._clock() - since, self._stall_seconds + prompt / LEAST_PREFILL_RATE
            if quiet > allowed:
                stalls.append(Stall(call.num_prompt_tokens, quiet, allowed))
        return stalls
