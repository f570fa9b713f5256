"""Log probabilities of prompt tokens: every prompt row of a chunk, in tiles, so that no chunk-sized logits exist."""

from collections.abc import Callable

import torch
from torch import Tensor

from twinspark_engine.ranks.transport import Transport
from twinspark_engine.runner.sampling import token_logprobs
from twinspark_engine.runner.sampling_exchange import VocabularyExchange, merge_raw
from twinspark_engine.scheduler.plan import TokenLogprobs

TILE_ROWS = 64
"""Rows whose logits exist at once; the height of a prompt row's tile in the head."""


class PromptScorer:
    """Called by the runner for requests that ask for prompt log probabilities, on every rank alike."""

    def __init__(self, transport: Transport, vocab_offset: int, logits_of: Callable[[Tensor], Tensor]) -> None:
        """logits_of gives the logits [t, columns of this rank] of hidden rows [t, D]."""
        self._exchange = VocabularyExchange(transport, vocab_offset)
        self._offset = vocab_offset
        self._logits_of = logits_of

    def score(self, hidden: Tensor, next_ids: Tensor, num_top: int) -> list[TokenLogprobs]:
        """One entry for each row of hidden [T, D]: the log probability of the id [T] int64 that follows it."""
        entries: list[TokenLogprobs] = []
        for rows, targets in zip(hidden.split(TILE_ROWS), next_ids.split(TILE_ROWS), strict=True):
            entries += self._score_tile(self._logits_of(rows), targets, num_top)
        return entries

    def _score_tile(self, logits: Tensor, targets: Tensor, num_top: int) -> list[TokenLogprobs]:
        columns = targets - self._offset
        is_own = (columns >= 0) & (columns < logits.shape[1])
        found = logits.gather(1, columns.clamp(0, logits.shape[1] - 1)[:, None]).double()
        own = found.masked_fill(~is_own[:, None], -torch.inf)
        gathered = self._exchange.gather(torch.cat([own, *self._exchange.raw_columns(logits, num_top)], dim=1))
        # Exactly one rank holds the id's column; the others sent -inf.
        target_logits = gathered[:, :, 0].amax(dim=0)
        return token_logprobs(target_logits, merge_raw(gathered[:, :, 1:], num_top), [num_top] * targets.shape[0])
