"""Sizes and shares that the scheduler keeps to. They decide when rows are computed, never their bits."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SchedulerLimits:
    """Chunk sizes are multiples of CELL_TOKENS."""

    num_slots: int
    context_tokens: int
    """Prompt and output tokens of a request at most."""
    chunk_tokens_beside_decoders: int
    """Rows of long prompts in a forward while a slot decodes, or beside a short prompt."""
    chunk_tokens_alone: int
    """Rows of long prompts in a forward that nobody else waits for."""
    queue_limit: int
    """Requests that wait at most, besides those that will take a slot in the next step."""
    num_blocks: int = 0
    """KV blocks that requests share, a context's at least; 0: a whole context for every slot."""
    short_prompt_tokens: int = 0
    """Prompts up to this length are computed at once, whatever time decode is owed."""
    decode_share: float = 0.0
    """Part of the time that decode gets while long prompts are computed beside it, 0 to below 1."""
    arrival_wait_seconds: float = 0.0
    """While no slot is busy, a first arrival waits at most this long for others to share its forward."""

    @property
    def forward_tokens(self) -> int:
        """Prompt rows of a forward at most."""
        return max(self.chunk_tokens_beside_decoders, self.chunk_tokens_alone)
