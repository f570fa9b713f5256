"""What the scheduler tells a request's caller, in order: Admitted, PromptLogprobsKnown, TokensCommitted, Finished."""

from dataclasses import dataclass

from twinspark_engine.request import FinishReason
from twinspark_engine.scheduler.plan import TokenLogprobs


@dataclass(frozen=True, slots=True)
class Admitted:
    """The request got its slot."""

    num_cached_tokens: int
    seed: int
    queue_seconds: float


@dataclass(frozen=True, slots=True)
class PromptLogprobsKnown:
    """Log probabilities of consecutive prompt tokens, the first at prompt index start."""

    start: int
    tokens: tuple[TokenLogprobs, ...]


@dataclass(frozen=True, slots=True)
class TokensCommitted:
    """Output tokens of one step, at least one."""

    token_ids: tuple[int, ...]
    logprobs: tuple[TokenLogprobs, ...]
    num_accepted_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Finished:
    """The request ended without an error. Counts are tokens; prior output tokens count as output."""

    reason: FinishReason
    stop_token_id: int | None
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int
    queue_seconds: float
    prefill_seconds: float
    decode_seconds: float
    num_rounds: int


Event = Admitted | PromptLogprobsKnown | TokensCommitted | Finished


@dataclass(frozen=True, slots=True)
class RequestEvent:
    """An event and the request it belongs to."""

    request_id: str
    event: Event
