"""A request in a slot, as the scheduler books it, and what its caller has heard so far."""

from dataclasses import dataclass

from twinspark_engine.request import Request


@dataclass(slots=True, eq=False)
class Delivery:
    """What the caller of a request was told, over all runs of the request: one that yields is run again.

    Times are seconds of the clock that the scheduler is given.
    """

    arrived_at: float
    admitted_at: float | None = None
    """When it got a slot for the first time."""
    next_prompt_index: int = 1
    """Log probabilities of the prompt tokens before this index were sent."""
    num_output_tokens: int = 0
    """Output tokens sent; prior output tokens not included."""
    first_token_at: float | None = None
    last_token_at: float | None = None


@dataclass(slots=True, eq=False)
class RunningRequest:
    """One run of a request, from its prompt on. Booked by the scheduler only."""

    request: Request
    slot: int
    delivery: Delivery
    turn: int = 0
    """Number of the admission: a larger one came later."""
    is_short: bool = False
    """Whether the prompt is computed whatever time decode is owed."""
    num_computed_tokens: int = 0
    """Prompt tokens whose state is in the cache once the plans made so far are executed."""
    num_rounds: int = 0
    """Decode windows planned so far."""
    num_output_tokens: int = 0
    """Output tokens committed by the executed steps of this run; prior output tokens not included."""
    times_passed_over: int = 0
    """Forwards over prompts in a row in which this one had no rows."""
    ended: bool = False
    """Finished, cancelled or yielded; outputs of plans still in flight are dropped."""

    @property
    def num_remaining_prompt_tokens(self) -> int:
        """Prompt tokens not yet planned."""
        return self.request.num_prompt_tokens - self.num_computed_tokens

    @property
    def is_prefilling(self) -> bool:
        """Whether part of the prompt is still to be planned."""
        return self.num_computed_tokens < self.request.num_prompt_tokens

    @property
    def may_decode(self) -> bool:
        """Whether a further round can commit a token: each draws at least one, after the one drawn from the prompt."""
        return not self.is_prefilling and self.num_rounds + 1 < self.request.limits.max_tokens
