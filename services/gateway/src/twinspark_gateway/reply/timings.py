"""Where the time of a choice went, over all its calls of the engine."""

import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

from twinspark_gateway.generation import Admitted, Event, Finished, Generation, Step


@dataclass(frozen=True, slots=True)
class Timings:
    """Seconds, and what was decoded in them. They add up over calls."""

    queue_seconds: float = 0.0
    prefill_seconds: float = 0.0
    decode_seconds: float = 0.0
    # Prompt tokens that were computed, those of a second call's longer prompt too.
    num_prefilled_tokens: int = 0
    # Output tokens after each call's first, and the rounds that they took.
    num_decoded_tokens: int = 0
    num_rounds: int = 0

    def __add__(self, other: "Timings") -> "Timings":
        return Timings(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


class CallTimer:
    """Times one call: as the engine says when it has ended, and as it was seen here if it was cancelled before."""

    def __init__(self, call: Generation, clock: Callable[[], float] = time.monotonic) -> None:
        self._call = call
        self._clock = clock
        self._admitted_at: float | None = None
        self._first_token_at: float | None = None
        self.timings = Timings()

    def note(self, event: Event) -> None:
        """Take an event of the call, when it comes."""
        seen = self.timings
        if isinstance(event, Admitted):
            self._admitted_at = self._clock()
            num_prefilled = len(self._call.prompt_token_ids) - event.num_cached_tokens
            self.timings = Timings(queue_seconds=event.queue_ms / 1e3, num_prefilled_tokens=num_prefilled)
        elif isinstance(event, Finished):
            self.timings = replace(
                seen,
                queue_seconds=event.queue_s,
                prefill_seconds=event.prefill_s,
                decode_seconds=event.decode_s,
                num_decoded_tokens=max(0, event.output_tokens - self._call.num_prior_output_tokens - 1),
                num_rounds=event.num_rounds,
            )
        elif isinstance(event, Step) and self._first_token_at is None:
            self._first_token_at = self._clock()
            prefill = self._first_token_at - (self._admitted_at or self._first_token_at)
            self.timings = replace(seen, prefill_seconds=prefill, num_decoded_tokens=len(event.token_ids) - 1)
        elif isinstance(event, Step):
            self.timings = replace(
                seen,
                decode_seconds=self._clock() - (self._first_token_at or 0.0),
                num_decoded_tokens=seen.num_decoded_tokens + len(event.token_ids),
                num_rounds=seen.num_rounds + 1,
            )
