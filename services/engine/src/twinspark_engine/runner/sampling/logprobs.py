"""Log probabilities of tokens in the raw distribution: temperature 1, before penalties, masks and cuts."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from twinspark_engine.ranks.transport import sum_in_rank_order
from twinspark_engine.runner.sampling.exchange import VocabularyExchange, merge_tops
from twinspark_engine.scheduler.plan import TokenLogprobs
from twinspark_kernels.candidates import log_sum_exp

TILE_ROWS = 64
"""Prompt rows whose logits exist at once; the height of a prompt row's tile in the head."""


def score_tokens(
    exchange: VocabularyExchange, logits: Tensor, ids: Tensor, num_top: Sequence[int]
) -> list[TokenLogprobs]:
    """One entry for each row of logits [T, columns]: the log probability of its id [T] int64, and num_top others.

    One gather that all ranks join.
    """
    count = max(num_top)
    parts = [_own_logits(exchange, logits, ids), log_sum_exp(logits)[:, None]]
    if count:
        parts.append(exchange.own_top(logits, min(count, logits.shape[1])))
    gathered = exchange.gather(torch.cat(parts, dim=1))
    # Exactly one rank holds the id's column; the others sent -inf.
    own = gathered[:, :, 0].amax(dim=0)
    log_sums = _log_of_sum(gathered[:, :, 1])
    top = merge_tops(gathered[:, :, 2:], count)
    entries = zip(
        (own - log_sums).tolist(), top.ids.tolist(), (top.logits - log_sums[:, None]).tolist(), num_top, strict=True
    )
    return [TokenLogprobs(own, tuple(ids[:most]), tuple(values[:most])) for own, ids, values, most in entries]


def _own_logits(exchange: VocabularyExchange, logits: Tensor, ids: Tensor) -> Tensor:
    """float64 [T, 1]: the logit of each row's id where this rank holds its column, else -inf."""
    columns = ids - exchange.vocabulary.first_id
    is_own = (columns >= 0) & (columns < logits.shape[1])
    found = logits.gather(1, columns.clamp(0, logits.shape[1] - 1)[:, None]).double()
    return found.masked_fill(~is_own[:, None], -torch.inf)


def _log_of_sum(log_sums: Tensor) -> Tensor:
    """[T] of [world_size, T]: the log of the sum of exp over ranks, added in rank order."""
    largest = log_sums.amax(dim=0)
    return sum_in_rank_order(torch.exp(log_sums - largest)).log() + largest


class PromptScorer:
    """Scores every prompt row of a chunk, in tiles, so that no chunk-sized logits exist.

    Called by the runner for requests that ask for prompt log probabilities, on every rank alike.
    """

    def __init__(self, exchange: VocabularyExchange, logits_of: Callable[[Tensor], Tensor]) -> None:
        """logits_of gives the logits [t, columns of this rank] of hidden rows [t, D]."""
        self._exchange = exchange
        self._logits_of = logits_of

    def score(self, hidden: Tensor, next_ids: Tensor, num_top: int) -> list[TokenLogprobs]:
        """One entry for each row of hidden [T, D]: the log probability of the id [T] int64 that follows it."""
        entries: list[TokenLogprobs] = []
        for rows, targets in zip(hidden.split(TILE_ROWS), next_ids.split(TILE_ROWS), strict=True):
            entries += score_tokens(self._exchange, self._logits_of(rows), targets, [num_top] * targets.shape[0])
        return entries
