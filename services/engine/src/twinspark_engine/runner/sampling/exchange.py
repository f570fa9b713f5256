"""What ranks tell each other about a row of logits, of which each holds its own columns of the vocabulary.

Every message is one float64 or int64 tensor whose shape follows from the rows' parameters alone, so all ranks agree on
it. Ids travel as float64, which is exact below 2^53.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from twinspark_engine.ranks.transport import Transport
from twinspark_engine.runner.sampling.vocabulary import VocabularySlice
from twinspark_kernels.candidates import top_candidates


@dataclass(frozen=True, slots=True)
class Ordered:
    """The n largest logits of each row, by (value descending, id ascending)."""

    logits: Tensor  # [T, n] float64
    ids: Tensor  # [T, n] int64

    def select(self, index: Tensor) -> "Ordered":
        """The rows at index."""
        return Ordered(self.logits[index], self.ids[index])


class VocabularyExchange:
    """Merges what the ranks found in their columns. Every method but own_top is one gather that all ranks join."""

    def __init__(self, transport: Transport, vocabulary: VocabularySlice) -> None:
        self.vocabulary = vocabulary
        self._transport = transport

    def largest(self, logits: Tensor, count: int, flags: Tensor | None = None) -> tuple[Ordered, list[int]]:
        """The true top of each row of logits [T, columns], as far as `count` candidates a rank prove it.

        And the largest flag of each row that any rank raised, [T] small integers each, where every rank gives flags.
        """
        own = self.own_top(logits, count)
        if flags is not None:
            own = torch.cat([own, flags.double()[:, None]], dim=1)
        gathered = self.gather(own)
        agreed: list[int] = [] if flags is None else gathered[:, :, -1].amax(dim=0).long().tolist()
        # Each of the first `count` of the union is among its own rank's first `count`; further ones need not be.
        columns = self.vocabulary.num_columns
        candidates = gathered[:, :, : 2 * count]
        return merge_tops(candidates, self._transport.world_size * columns if count == columns else count), agreed

    def own_top(self, logits: Tensor, count: int) -> Tensor:
        """float64 [T, 2 * count]: the largest logits of this rank's columns, then their ids."""
        values, ids = top_candidates(logits, count, self.vocabulary.first_id)
        return torch.cat([values.double(), ids.double()], dim=1)

    def sum_integers(self, values: Tensor) -> Tensor:
        """int64 [T] added over ranks; exact in any order."""
        return self.gather(values).sum(dim=0)

    def best(self, scores: Tensor, ids: Tensor) -> Tensor:
        """Id [T] of the largest float64 score of all ranks, ties to the lower id."""
        gathered = self.gather(torch.stack([scores.view(torch.int64), ids]))
        all_scores = gathered[:, 0].contiguous().view(torch.float64)
        # The first rank with the largest score, since ids ascend with the rank; argmax does not promise which one.
        is_best = all_scores == all_scores.amax(dim=0)
        rank = (is_best.cumsum(dim=0) == 0).sum(dim=0)
        return gathered[rank, 1, torch.arange(rank.shape[0])]

    def whole(self, logits: Tensor) -> Ordered:
        """Whole rows [T, vocabulary] of logits [T, columns], sorted."""
        gathered = self.gather(logits.contiguous()).double()
        ids = torch.arange(gathered.shape[0] * gathered.shape[2]).view(gathered.shape[0], 1, -1)
        return _merge(gathered, ids.expand_as(gathered), ids.numel())

    def gather(self, payload: Tensor) -> Tensor:
        """[world_size, *payload.shape] in rank order; a failed exchange raises before anything is read."""
        gathered = self._transport.gather(payload)
        self._transport.check()
        return gathered


def merge_tops(gathered: Tensor, count: int) -> Ordered:
    """The first `count` of all ranks' own_top, [world_size, T, 2 * n]."""
    width = gathered.shape[2] // 2
    return _merge(gathered[:, :, :width], gathered[:, :, width:], count)


def _merge(logits: Tensor, ids: Tensor, count: int) -> Ordered:
    """The first `count` of [world_size, T, n] parts that are each sorted.

    A stable sort of the parts in rank order keeps ties by id, since ids ascend with the rank.
    """
    rows = logits.shape[1]
    flat = logits.permute(1, 0, 2).reshape(rows, -1)
    ordered, order = flat.sort(dim=1, descending=True, stable=True)
    flat_ids = ids.permute(1, 0, 2).reshape(rows, -1)
    return Ordered(ordered[:, :count], flat_ids.gather(1, order[:, :count]).long())
