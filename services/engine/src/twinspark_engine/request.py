"""A request as the engine runs it: plain data with every default filled in, equal on all ranks."""

import enum
from dataclasses import dataclass, field


class FinishReason(enum.Enum):
    """Why output ended."""

    STOP = "stop"
    """An end token or a stop id was drawn."""
    LENGTH = "length"
    """max_tokens or the context was reached."""


class ConstraintFailure(enum.IntEnum):
    """Why a request cannot go on under its grammar. The larger one counts where ranks met different ones."""

    SLOW = 1
    """A rank had no mask in time."""
    LOST = 2
    """A rank lost its grammar service, or has none."""
    STUCK = 3
    """The grammar allows no token that may be drawn, or refuses one that was."""
    REFUSED = 4
    """The grammar service refuses the grammar, its handle or the stop ids."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """What constrains output: by handle, and by source for a grammar service that lacks it."""

    handle: str
    kind: int
    """How the source is to be read: a number of twinspark.grammar.v1.GrammarKind."""
    source: str
    starts_after_thinking: bool = False
    """It constrains from the token after the first end-of-thinking token on, else from the first."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How a token is drawn.

    Order: repetition, frequency and presence penalty, logit_bias, masks, temperature, top_k, top_p, min_p, keyed Gumbel
    draw.
    """

    seed: int
    """Key of the draw, 0 to 2^64 - 1, offset already added."""
    temperature: float = 1.0
    """0 draws the largest logit, ties to the lower id, and ignores the filters."""
    top_k: int = 0
    """Number of most likely ids kept; 0: no cut."""
    top_p: float = 1.0
    """Probability that the kept set reaches, in (0, 1]."""
    min_p: float = 0.0
    """Ids less likely than this times the likeliest are dropped, in [0, 1]."""
    repetition_penalty: float = 1.0
    """Divides (positive logit) or multiplies (other) the logit of each id in prompt or output, above 0; 1: off."""
    frequency_penalty: float = 0.0
    """Subtracted from an id's logit for each time that the output holds it; 0: off."""
    presence_penalty: float = 0.0
    """Subtracted once from the logit of each id that the output holds; 0: off."""
    logit_bias: tuple[tuple[int, float], ...] = ()
    """What is added to the logits of ids, each id once."""

    @property
    def has_penalties(self) -> bool:
        """The tokens before a row change its logits."""
        return self.repetition_penalty != 1 or self.frequency_penalty != 0 or self.presence_penalty != 0

    @property
    def changes_logits(self) -> bool:
        """Logits that are drawn from may differ from the model's."""
        return self.has_penalties or bool(self.logit_bias)


@dataclass(frozen=True, slots=True)
class Limits:
    """When a request ends."""

    max_tokens: int
    """Largest number of output tokens; 0 computes the prompt only."""
    stop_token_ids: frozenset[int] = field(default_factory=frozenset)
    """Ids that end the output besides the checkpoint's end tokens."""
    ignore_eos: bool = False
    """The checkpoint's end tokens do not end the output."""
    min_tokens: int = 0
    """End tokens and stop ids are masked until this many output tokens exist."""


@dataclass(frozen=True, slots=True)
class Request:
    """One generation: one prompt, one choice."""

    request_id: str
    prompt_token_ids: tuple[int, ...]
    """At least one id; all are prompt rows."""
    sampling: SamplingParams
    limits: Limits
    num_top_logprobs: int | None = None
    """Most likely ids reported beside each output token's own log probability; None: no log probabilities."""
    num_prompt_top_logprobs: int | None = None
    """The same for the prompt tokens from index 1 on."""
    num_prior_output_tokens: int = 0
    """Trailing prompt ids that count as output for penalties, min_tokens and usage."""
    is_background: bool = False
    """Gives its slot up to a waiting foreground request, and is then run again from its prompt."""
    grammar: Grammar | None = None
    """What every output token is allowed by; None: unconstrained."""

    @property
    def num_prompt_tokens(self) -> int:
        """Number of prompt rows."""
        return len(self.prompt_token_ids)

    @property
    def prior_output_token_ids(self) -> tuple[int, ...]:
        """The prompt ids that count as output."""
        return self.prompt_token_ids[len(self.prompt_token_ids) - self.num_prior_output_tokens :]

    @property
    def num_reserved_tokens(self) -> int:
        """Token positions that the request can occupy in the cache at most."""
        return len(self.prompt_token_ids) + self.limits.max_tokens
