"""StepPlan and StepResult: what goes from the scheduler to every rank's runner, and what comes back.

A plan holds everything that ranks need to execute the same step. What follows from shared inputs (tokens drawn, stops)
is computed by each rank from the plan and never sent.
"""

from dataclasses import dataclass, field

from twinspark_engine.request import ConstraintFailure, FinishReason, Request

CELL_TOKENS = 64
"""Prompt chunks start at multiples of this many tokens, and end at one or at the prompt's end."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Puts a request into a slot, which is reset first."""

    slot: int
    request: Request
    num_cached_tokens: int = 0
    """Prompt tokens whose state is read from a stored prefix; a multiple of CELL_TOKENS."""


@dataclass(frozen=True, slots=True)
class PrefillChunk:
    """Positions start to start + num_scheduled_tokens - 1 of a slot's prompt."""

    slot: int
    start: int
    num_scheduled_tokens: int


@dataclass(frozen=True, slots=True)
class DecodeWindow:
    """A slot's part of the decode forward."""

    slot: int
    max_rows: int = 1
    """One committed token and its drafts at most, 1 to 16."""


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One scheduler decision. Order of execution: cancels, admissions, chunks (one forward), windows (one forward)."""

    epoch: int
    step: int
    """Number of the step in its epoch, from 0, without gaps."""
    cancelled_slots: tuple[int, ...] = ()
    """Slots whose request ends before this step. One that already ended is passed over."""
    admissions: tuple[Admission, ...] = ()
    chunks: tuple[PrefillChunk, ...] = ()
    """All run in one forward. A chunk that reaches its prompt's end draws the first output token."""
    windows: tuple[DecodeWindow, ...] = ()
    """A slot whose request ended in an earlier step is skipped."""
    report_memory: bool = False
    """Followers answer with an account of memory."""

    @property
    def is_empty(self) -> bool:
        """Whether the plan asks for nothing."""
        return not (self.cancelled_slots or self.admissions or self.chunks or self.windows or self.report_memory)


@dataclass(frozen=True, slots=True)
class TokenLogprobs:
    """Log probability of a token in the raw distribution, and the most likely alternatives by falling probability."""

    logprob: float
    top_token_ids: tuple[int, ...] = ()
    top_logprobs: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class SlotOutput:
    """What one step committed in one slot. At most one for each slot and step."""

    slot: int
    token_ids: tuple[int, ...] = ()
    """Output tokens in order; an end token or stop id that ends the output is included and is the last."""
    logprobs: tuple[TokenLogprobs, ...] = ()
    """One entry for each output token if the request asked for them, else empty."""
    prompt_logprobs: tuple[TokenLogprobs, ...] = ()
    """Entries of consecutive prompt tokens that this step's chunk made known."""
    prompt_logprobs_start: int = 0
    """Prompt index of the first entry, at least 1."""
    finish_reason: FinishReason | None = None
    """Set when the request ended in this step; the slot is then free."""
    stop_token_id: int | None = None
    """The end token or stop id that ended the output."""
    failure: ConstraintFailure | None = None
    """Set when the request ended in this step because of its grammar; the slot is then free."""

    @property
    def has_ended(self) -> bool:
        """The request is over and its slot free."""
        return self.finish_reason is not None or self.failure is not None


@dataclass(frozen=True, slots=True)
class StepResult:
    """Outputs of one step, equal on every rank; the times are this rank's own."""

    outputs: tuple[SlotOutput, ...] = ()
    """Slots that committed tokens, made prompt log probabilities known, or ended (also with max_tokens 0)."""
    prefill_us: int = field(default=0, compare=False)
    """Time spent in the prefill forward and its sampling."""
    decode_us: int = field(default=0, compare=False)
    """Time spent in the decode forward and its sampling."""
    mask_wait_us: int = field(default=0, compare=False)
    """Time that this rank waited for token masks after its logits were there."""
    num_masked_rows: int = field(default=0, compare=False)
    """Rows that were drawn under a token mask."""
    num_free_blocks: int | None = field(default=None, compare=False)
    """KV blocks that no slot has after this step, where the cache is checked; the scheduler's own count must agree."""
