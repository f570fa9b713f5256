"""What ranks tell each other about a row of logits, of which each holds its own columns of the vocabulary.

Every message is one float64 or int64 tensor whose shape follows from the rows' parameters alone, so all ranks agree on
it. Ids travel as float64, which is exact below 2^53.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from twinspark_engine.ranks.transport import Transport, sum_in_rank_order
from twinspark_kernels.candidates import log_sum_exp, top_candidates


@dataclass(frozen=True, slots=True)
class Ordered:
    """The n largest logits of each row, by (value descending, id ascending)."""

    logits: Tensor  # [T, n] float64
    ids: Tensor  # [T, n] int64


@dataclass(frozen=True, slots=True)
class RawScores:
    """The distribution of each row at temperature 1, before every cut and mask."""

    log_sums: Tensor  # [T] float64
    top: Ordered  # n may be 0


class VocabularyExchange:
    """Merges what the ranks found in their columns. Every method is one gather that all ranks join."""

    def __init__(self, transport: Transport, vocab_offset: int) -> None:
        self._transport = transport
        self._offset = vocab_offset

    def largest(
        self, logits: Tensor, count: int, raw_logits: Tensor, num_top: int | None
    ) -> tuple[Ordered, RawScores | None]:
        """The true top of each row of logits [T, columns], as far as `count` candidates a rank prove it.

        With num_top the scores of raw_logits [T, columns] come along; None: they are not computed.
        """
        columns = logits.shape[1]
        parts = self._columns(logits, count)
        if num_top is not None:
            parts += self.raw_columns(raw_logits, num_top)
        gathered = self.gather(torch.cat(parts, dim=1))
        # Each of the first `count` of the union is among its own rank's first `count`; further ones need not be.
        proven = self._transport.world_size * columns if count == columns else count
        found = merge(gathered[:, :, :count], gathered[:, :, count : 2 * count], proven)
        return found, None if num_top is None else merge_raw(gathered[:, :, 2 * count :], num_top)

    def raw_columns(self, raw_logits: Tensor, num_top: int) -> list[Tensor]:
        """This rank's columns for merge_raw: the log of the sum of exp, then up to num_top logits and their ids."""
        count = min(num_top, raw_logits.shape[1])
        return [log_sum_exp(raw_logits)[:, None], *(self._columns(raw_logits, count) if count else [])]

    def _columns(self, logits: Tensor, count: int) -> list[Tensor]:
        values, ids = top_candidates(logits, count, self._offset)
        return [values.double(), ids.double()]

    def sum_integers(self, values: Tensor) -> Tensor:
        """int64 [T] added over ranks; exact in any order."""
        return self.gather(values).sum(dim=0)

    def best(self, scores: Tensor, ids: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Id [T] and logit [T] of the largest float64 score of all ranks, ties to the lower id."""
        payload = torch.stack([scores.view(torch.int64), ids, logits.view(torch.int64)])
        gathered = self.gather(payload)
        all_scores = gathered[:, 0].contiguous().view(torch.float64)
        # The first rank with the largest score, since ids ascend with the rank; argmax does not promise which one.
        is_best = all_scores == all_scores.amax(dim=0)
        rank = (is_best.cumsum(dim=0) == 0).sum(dim=0)
        row = torch.arange(rank.shape[0])
        return gathered[rank, 1, row], gathered[rank, 2, row].contiguous().view(torch.float64)

    def whole(self, logits: Tensor) -> Ordered:
        """Whole rows [T, vocabulary] of logits [T, columns], sorted."""
        gathered = self.gather(logits.contiguous()).double()
        ids = torch.arange(gathered.shape[0] * gathered.shape[2]).view(gathered.shape[0], 1, -1)
        return merge(gathered, ids.expand_as(gathered), ids.numel())

    def gather(self, payload: Tensor) -> Tensor:
        """[world_size, *payload.shape] in rank order; a failed exchange raises before anything is read."""
        gathered = self._transport.gather(payload)
        self._transport.check()
        return gathered


def merge(logits: Tensor, ids: Tensor, count: int) -> Ordered:
    """The first `count` of [world_size, T, n] parts that are each sorted.

    A stable sort of the parts in rank order keeps ties by id, since ids ascend with the rank.
    """
    rows = logits.shape[1]
    flat = logits.permute(1, 0, 2).reshape(rows, -1)
    ordered, order = flat.sort(dim=1, descending=True, stable=True)
    flat_ids = ids.permute(1, 0, 2).reshape(rows, -1)
    return Ordered(ordered[:, :count], flat_ids.gather(1, order[:, :count]).long())


def merge_raw(gathered: Tensor, num_top: int) -> RawScores:
    """RawScores of [world_size, T, 1 + 2 * n] columns, n up to num_top; sums are added in rank order."""
    count = gathered.shape[2] // 2
    log_sums = gathered[:, :, 0]
    largest = log_sums.amax(dim=0)
    total = sum_in_rank_order(torch.exp(log_sums - largest))
    top = merge(gathered[:, :, 1 : 1 + count], gathered[:, :, 1 + count :], num_top)
    return RawScores(total.log() + largest, top)
