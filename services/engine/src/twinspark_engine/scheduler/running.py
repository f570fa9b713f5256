"""A request in a slot, as the scheduler books it."""

from dataclasses import dataclass

from twinspark_engine.request import Request


@dataclass(slots=True, eq=False)
class RunningRequest:
    """Booked by the scheduler only. Times are seconds of the clock that the scheduler is given."""

    request: Request
    slot: int
    arrived_at: float
    admitted_at: float
    num_computed_tokens: int = 0
    """Prompt tokens whose state is in the cache once the plans made so far are executed."""
    num_rounds: int = 0
    """Decode windows planned so far."""
    num_output_tokens: int = 0
    """Output tokens committed by executed steps; prior output tokens not included."""
    times_passed_over: int = 0
    """Steps in a row in which other prompts took the whole chunk budget."""
    first_token_at: float | None = None
    last_token_at: float | None = None
    ended: bool = False
    """Finished or cancelled; outputs of plans still in flight are dropped."""

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
