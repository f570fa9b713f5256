"""What the gateway asks of the engine and what it hears back: plain data, without protobuf."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn; every field holds its effective value."""

    temperature: float = 1.0
    # 0: no cut.
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    # On ids of prompt and output; 1: off.
    repetition_penalty: float = 1.0
    # On ids of the output; 0: off.
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    # Added to the logits of ids.
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    # None: derived from the prompt by the engine. A signed 64-bit number.
    seed: int | None = None


class GrammarKind(enum.IntEnum):
    """How a grammar's source is to be read; the numbers are those of twinspark.grammar.v1.GrammarKind."""

    JSON_SCHEMA = 1
    REGEX = 2
    EBNF = 3
    JSON_OBJECT = 5
    CHOICE = 6
    TOOL_CALLS = 7


@dataclass(frozen=True, slots=True)
class Grammar:
    """A compiled grammar that the output follows; the source too, so that any replica can compile what it lacks."""

    handle: str
    kind: GrammarKind
    source: str
    # True: it constrains from the token after the first end-of-thinking token on, and the output cannot end before.
    starts_after_thinking: bool = False


@dataclass(frozen=True, slots=True)
class Generation:
    """One call of Generate: one prompt, one choice."""

    request_id: str
    prompt_token_ids: Sequence[int]
    max_tokens: int
    sampling: Sampling = field(default_factory=Sampling)
    # Index of the choice, added to the seed.
    seed_offset: int = 0
    stop_token_ids: Sequence[int] = ()
    ignore_eos: bool = False
    # Output tokens before an end token, a stop id or a stop string may end the output.
    min_tokens: int = 0
    # Number of alternatives beside the token's own log probability; None: no log probabilities.
    num_top_logprobs: int | None = None
    num_top_prompt_logprobs: int | None = None
    # False: one token a step, without drafts. The reply is the same.
    draft: bool = True
    # True: the request yields its slot to foreground requests, and is run again. The reply is the same.
    is_background: bool = False
    # None: any output.
    grammar: Grammar | None = None
    # The last ids of the prompt that count as output, for penalties, min_tokens and usage.
    num_prior_output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """A token's log probability and the most likely alternatives as (id, log probability), most likely first."""

    logprob: float
    top: Sequence[tuple[int, float]] = ()


@dataclass(frozen=True, slots=True)
class Admitted:
    """The request has its slot."""

    num_cached_tokens: int
    seed: int
    queue_ms: int


@dataclass(frozen=True, slots=True)
class PromptLogprobs:
    """Log probabilities of consecutive prompt tokens from index start on."""

    start: int
    tokens: Sequence[TokenLogprob]


@dataclass(frozen=True, slots=True)
class Step:
    """The output tokens that one step committed; logprobs has one entry for each, or none."""

    token_ids: Sequence[int]
    logprobs: Sequence[TokenLogprob] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """The engine ended the output. Times are in seconds."""

    # "stop" or "length".
    reason: str
    stop_token_id: int | None
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int
    queue_s: float
    prefill_s: float
    decode_s: float
    # Rounds that decoded the request; each gave at least one token.
    num_rounds: int = 0


Event = Admitted | PromptLogprobs | Step | Finished


@dataclass(frozen=True, slots=True)
class EngineSizes:
    """Where prompts are cut, in tokens, as in the engine's DescribeResponse. No reply depends on it."""

    block_tokens: int
    pool_tokens: int
    chunk_tokens_alone: int
    chunk_tokens_beside_decoders: int
    short_prompt_tokens: int


@dataclass(frozen=True, slots=True)
class EngineModel:
    """What never changes while the engine runs."""

    context_length: int
    vocabulary_size: int
    eos_token_ids: frozenset[int]
    num_slots: int
    world_size: int
    max_top_logprobs: int
    fingerprint: str
    sizes: EngineSizes


@dataclass(frozen=True, slots=True)
class KvPool:
    """The KV blocks of one rank."""

    num_blocks: int
    num_used_blocks: int
    block_tokens: int
    block_bytes: int


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """What the engine's admission by memory counts with, in bytes."""

    slot_bytes: int
    reserve_bytes: int
    admit_bytes: int


@dataclass(frozen=True, slots=True)
class RankMemory:
    """One rank's account of memory in bytes, as in the engine's RankMemory."""

    rank: int
    source: str
    resident_bytes: int
    peak_resident_bytes: int
    total_bytes: int
    free_bytes: int
    available_bytes: int
    parts: dict[str, int]
    kv_pool: KvPool | None
    budget: MemoryBudget | None
    num_open_descriptors: int


@dataclass(frozen=True, slots=True)
class EngineStats:
    """Gauges and counters of the engine, as in GetStatsResponse."""

    # loading, forming, serving, draining or unspecified.
    state: str
    gauges: dict[str, int]
    counters: dict[str, int]
    # Requests that were given each slot, by slot.
    slot_admissions: Sequence[int] = ()

    @property
    def is_serving(self) -> bool:
        """Whether the engine takes new requests."""
        return self.state == "serving"
