"""A request in a slot as the runner keeps it on every rank: what the next step needs, and when output ends."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from twinspark_engine.masks.source import Masks
from twinspark_engine.request import FinishReason, Request
from twinspark_engine.runner.sampling.rows import DrawRow


@dataclass(slots=True)
class SlotRequest:
    """Changed by the runner only. A prompt token is a prompt row; an output token fed back is a decode row."""

    request: Request
    prompt_ids: Tensor  # [num_prompt_tokens] int64
    num_computed_tokens: int = 0
    num_output_tokens: int = 0
    last_token_id: int = -1

    @classmethod
    def admit(cls, request: Request) -> "SlotRequest":
        """At position 0. O(prompt), once for each request."""
        return cls(request, torch.tensor(request.prompt_token_ids, dtype=torch.int64))

    @property
    def is_prefilling(self) -> bool:
        """Prompt tokens remain to be computed."""
        return self.num_computed_tokens < self.prompt_ids.shape[0]

    @property
    def num_tokens(self) -> int:
        """Prompt and output tokens; the position of the next token to draw."""
        return self.prompt_ids.shape[0] + self.num_output_tokens

    def draw_row(self, slot: int, path: tuple[int, ...] = (), masks: Masks | None = None) -> DrawRow:
        """How the token is drawn that follows the committed tokens and the drafts of path.

        masks: those of the slot's window, of which row i follows i drafts, or none of them; None: unconstrained.
        """
        request = self.request
        num_before = request.num_prior_output_tokens + self.num_output_tokens + len(path)
        return DrawRow(
            slot=slot,
            params=request.sampling,
            position=self.num_tokens + len(path),
            path=path,
            masks_ends=num_before < request.limits.min_tokens,
            num_top_logprobs=request.num_top_logprobs,
            constraint=masks[len(path)] if isinstance(masks, Sequence) else masks,
        )

    def commit(self, token_id: int) -> None:
        """Take a drawn token as output."""
        self.last_token_id = token_id
        self.num_output_tokens += 1


@dataclass(frozen=True, slots=True)
class StopRule:
    """When output ends; a function of tokens and counts only, so that all ranks decide alike."""

    eos_token_ids: frozenset[int]
    context_tokens: int
    """Prompt and output tokens of a request at most."""

    def token_limit(self, running: SlotRequest) -> int:
        """Output tokens of the request at most; 0: its prompt is computed, nothing is drawn."""
        return min(running.request.limits.max_tokens, self.context_tokens - running.prompt_ids.shape[0])

    def finish_reason(self, running: SlotRequest) -> FinishReason | None:
        """Why the request ends after the token committed last, if it does."""
        if running.num_output_tokens > 0 and self._is_stop(running):
            return FinishReason.STOP
        return FinishReason.LENGTH if running.num_output_tokens >= self.token_limit(running) else None

    def _is_stop(self, running: SlotRequest) -> bool:
        limits = running.request.limits
        is_end = running.last_token_id in self.eos_token_ids and not limits.ignore_eos
        return is_end or running.last_token_id in limits.stop_token_ids
