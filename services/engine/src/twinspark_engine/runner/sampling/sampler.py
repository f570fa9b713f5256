"""Draws one token for each row of a step, from logits whose vocabulary is split over the ranks.

A token depends on its row's logits, parameters, history and position only: never on the other rows, the candidates that
travelled, or the number of ranks. All ranks compute it from the same exchanged data.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from twinspark_engine.request import ConstraintFailure
from twinspark_engine.runner.sampling.adjustments import LogitAdjustments
from twinspark_engine.runner.sampling.exchange import Ordered, VocabularyExchange
from twinspark_engine.runner.sampling.filters import (
    keep_min_p,
    keep_nucleus,
    keep_top_k,
    masses,
    scale,
    wanted_masses,
)
from twinspark_engine.runner.sampling.logprobs import score_tokens
from twinspark_engine.runner.sampling.masks import TokenMasks
from twinspark_engine.runner.sampling.rows import (
    NO_FAILURE,
    DrawBuffers,
    Drawn,
    DrawnToken,
    DrawRow,
    DrawTensors,
)
from twinspark_kernels.keyed_draw import draw

NUCLEUS_CANDIDATES = 1024
"""Candidates a rank sends for a row with a nucleus and no top_k. Whole rows follow where the nucleus runs past them."""


class LogitsError(ArithmeticError):
    """A row of logits holds NaN or infinity: every rank sees it in the same exchange."""


class Sampler:
    """Called by the runner once a step, on every rank alike."""

    def __init__(self, exchange: VocabularyExchange, adjustments: LogitAdjustments, max_rows: int) -> None:
        self._exchange = exchange
        self._adjustments = adjustments
        self._buffers = DrawBuffers(max_rows)
        self._masks = TokenMasks(exchange.vocabulary, max_rows)

    def sample(self, raw_logits: Tensor, rows: Sequence[DrawRow]) -> list[Drawn]:
        """One token for each row of raw_logits [T, columns of this rank], or the failure that any rank has of it.

        A row that fails is drawn with the others and forgotten, so that ranks join the same exchanges whatever each of
        them has. Raises LogitsError, TransportError.
        """
        tensors = self._buffers.write(rows)
        logits = self._allowed(raw_logits, rows, tensors)
        found, failures = self._find(logits, rows)
        ids = self._draw(logits, found, rows, tensors)
        logprobs = dict.fromkeys(range(len(rows)))
        asked = {p: row.num_top_logprobs for p, row in enumerate(rows) if row.num_top_logprobs is not None}
        if asked:
            index = torch.tensor(list(asked))
            entries = score_tokens(self._exchange, raw_logits[index], ids[index], list(asked.values()))
            logprobs |= dict(zip(asked, entries, strict=True))
        return [
            failures.get(place) or DrawnToken(token_id, logprobs[place]) for place, token_id in enumerate(ids.tolist())
        ]

    def data_pointers(self) -> tuple[int, ...]:
        """Addresses of the buffers of parameters and masks, which never change."""
        return (*self._buffers.data_pointers(), *self._masks.data_pointers())

    def _allowed(self, raw_logits: Tensor, rows: Sequence[DrawRow], tensors: DrawTensors) -> Tensor:
        """The logits to draw from; the model's own stay as they are, for log probabilities."""
        logits = self._adjustments.apply(raw_logits, rows, tensors)
        if any(row.mask is not None for row in rows):
            logits = logits.clone() if logits is raw_logits else logits
            self._masks.apply(logits, rows)
        return logits

    def _find(self, logits: Tensor, rows: Sequence[DrawRow]) -> tuple[Ordered, dict[int, ConstraintFailure]]:
        """The candidates of logits [T, columns], and the rows that a rank has no mask for, by place."""
        count = max(_num_candidates(row, logits.shape[1]) for row in rows)
        is_constrained = any(row.constraint is not None for row in rows)
        flags = torch.tensor([row.failure for row in rows]) if is_constrained else None
        found, agreed = self._exchange.largest(logits, count, flags)
        if not bool(found.logits[:, 0].isfinite().all()):
            raise LogitsError("the model's logits are not finite")
        return found, {place: ConstraintFailure(flag) for place, flag in enumerate(agreed) if flag != NO_FAILURE}

    def _draw(self, logits: Tensor, found: Ordered, rows: Sequence[DrawRow], tensors: DrawTensors) -> Tensor:
        """Ids [T] drawn from logits [T, columns], of which found has the candidates."""
        ids = found.ids[:, 0].clone()
        chosen = [place for place, row in enumerate(rows) if row.draws_from_all]
        if chosen:
            index = torch.tensor(chosen)
            ids[index] = self._draw_from_all(logits[index], found.logits[index, 0], tensors.select(index))
        chosen = [place for place, row in enumerate(rows) if not (row.is_greedy or row.draws_from_all)]
        if chosen:
            index = torch.tensor(chosen)
            ids[index] = self._draw_from_found(
                logits[index], found.select(index), tensors.select(index), [rows[place] for place in chosen]
            )
        return ids

    def _draw_from_all(self, logits: Tensor, largest: Tensor, tensors: DrawTensors) -> Tensor:
        """Ids [n] where only min_p cuts: each rank draws from its own columns, the best draw wins."""
        first_id = self._exchange.vocabulary.first_id
        ids = torch.arange(logits.shape[1])[None] + first_id
        scaled = scale(logits, tensors.temperatures)
        kept = keep_min_p(scaled, largest / tensors.temperatures, tensors.log_min_p)
        columns, scores = draw(scaled, ids, kept, tensors.seeds, tensors.positions)
        return self._exchange.best(scores, columns + first_id)

    def _draw_from_found(self, logits: Tensor, found: Ordered, tensors: DrawTensors, rows: Sequence[DrawRow]) -> Tensor:
        """Ids [n] of rows with a top_k or a nucleus, n rows of candidates."""
        totals: list[int | None] = [None] * len(rows)
        open_ended = [place for place, row in enumerate(rows) if row.needs_total]
        if open_ended:
            index = torch.tensor(open_ended)
            largest = found.logits[index, 0] / tensors.temperatures[index]
            own = masses(scale(logits[index], tensors.temperatures[index]), largest).sum(dim=1)
            for place, total in zip(open_ended, self._exchange.sum_integers(own).tolist(), strict=True):
                totals[place] = total
        ids, is_proven = _cut_and_draw(found, tensors, [row.params.top_p for row in rows], totals)
        beyond = [place for place in open_ended if not is_proven[place]]
        if beyond:
            index = torch.tensor(beyond)
            shares = [rows[place].params.top_p for place in beyond]
            whole = self._exchange.whole(logits[index])
            ids[index], _ = _cut_and_draw(whole, tensors.select(index), shares, [None] * len(beyond))
        return ids


def _num_candidates(row: DrawRow, columns: int) -> int:
    """Candidates that a rank sends for a row; the largest logit always travels."""
    if row.is_greedy or row.draws_from_all:
        return 1
    return min(row.params.top_k or NUCLEUS_CANDIDATES, columns)


def _cut_and_draw(
    found: Ordered, tensors: DrawTensors, top_p: Sequence[float], totals: Sequence[int | None]
) -> tuple[Tensor, list[bool]]:
    """Ids [n] drawn from sorted candidates, and whether they hold the whole nucleus.

    A total of None is the mass of the candidates that top_k keeps.
    """
    scaled = scale(found.logits, tensors.temperatures)
    largest = scaled[:, 0]
    kept = keep_top_k(scaled.shape[1], tensors.top_k)
    row_masses = masses(scaled, largest) * kept
    sums = row_masses.sum(dim=1).tolist()
    wanted = wanted_masses(top_p, [own if total is None else total for own, total in zip(sums, totals, strict=True)])
    kept &= keep_nucleus(row_masses, wanted) & keep_min_p(scaled, largest, tensors.log_min_p)
    columns, _ = draw(scaled, found.ids, kept, tensors.seeds, tensors.positions)
    ids = found.ids.gather(1, columns[:, None])[:, 0]
    return ids, [own >= need for own, need in zip(sums, wanted.tolist(), strict=True)]
