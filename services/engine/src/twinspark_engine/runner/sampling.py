"""Draws one token for each row of a step, from logits whose vocabulary is split over the ranks.

A token depends on its row's logits, parameters and position only: never on the other rows, the candidates that
travelled, or the number of ranks. All ranks compute it from the same exchanged data.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from twinspark_engine.ranks.transport import Transport
from twinspark_engine.runner.sampling_exchange import Ordered, RawScores, VocabularyExchange
from twinspark_engine.runner.sampling_filters import (
    keep_min_p,
    keep_nucleus,
    keep_top_k,
    masses,
    scale,
    wanted_masses,
)
from twinspark_engine.runner.sampling_params import DrawBuffers, DrawnToken, DrawRow, DrawTensors
from twinspark_engine.scheduler.plan import TokenLogprobs
from twinspark_kernels.keyed_draw import draw

NUCLEUS_CANDIDATES = 1024
"""Candidates a rank sends for a row with a nucleus and no top_k. Whole rows follow where the nucleus runs past them."""


class LogitsError(ArithmeticError):
    """A row of logits holds NaN or infinity: every rank sees it in the same exchange."""


class Sampler:
    """Called by the runner once a step, on every rank alike."""

    def __init__(
        self, transport: Transport, vocab_offset: int, masked_token_ids: frozenset[int], max_rows: int
    ) -> None:
        """masked_token_ids, of the whole vocabulary, are never drawn. Log probabilities cover them all the same."""
        self._exchange = VocabularyExchange(transport, vocab_offset)
        self._offset = vocab_offset
        self._masked_columns = torch.tensor(
            sorted(i - vocab_offset for i in masked_token_ids if i >= vocab_offset), dtype=torch.int64
        )
        self._buffers = DrawBuffers(max_rows)

    def sample(self, raw_logits: Tensor, rows: Sequence[DrawRow]) -> list[DrawnToken]:
        """One token for each row of raw_logits [T, columns of this rank]. Raises LogitsError, TransportError."""
        logits = self._mask(raw_logits)
        tensors = self._buffers.write(rows)
        asked = [row.num_top_logprobs for row in rows if row.num_top_logprobs is not None]
        count = max(_num_candidates(row, logits.shape[1]) for row in rows)
        found, raw = self._exchange.largest(logits, count, raw_logits, max(asked) if asked else None)
        if not bool(found.logits[:, 0].isfinite().all()):
            raise LogitsError("the model's logits are not finite")
        ids, values = found.ids[:, 0].clone(), found.logits[:, 0].clone()
        chosen = [place for place, row in enumerate(rows) if row.draws_from_all]
        if chosen:
            index = torch.tensor(chosen)
            drawn = self._draw_from_all(logits[index], found.logits[index, 0], tensors.select(index))
            ids[index], values[index] = drawn
        chosen = [place for place, row in enumerate(rows) if not (row.is_greedy or row.draws_from_all)]
        if chosen:
            index = torch.tensor(chosen)
            found = Ordered(found.logits[index], found.ids[index])
            drawn = self._draw_from_found(
                logits[index], found, tensors.select(index), [rows[place] for place in chosen]
            )
            ids[index], values[index] = drawn
        return _answers(ids, values, raw, rows)

    def data_pointers(self) -> tuple[int, ...]:
        """Addresses of the parameter buffers, which never change."""
        return self._buffers.data_pointers()

    def _mask(self, raw_logits: Tensor) -> Tensor:
        """The logits with -inf for ids that are never drawn."""
        columns = self._masked_columns[self._masked_columns < raw_logits.shape[1]]
        if not columns.numel():
            return raw_logits
        return raw_logits.index_fill(1, columns, -torch.inf)

    def _draw_from_all(self, logits: Tensor, largest: Tensor, tensors: DrawTensors) -> tuple[Tensor, Tensor]:
        """Ids [n] and logits [n] where only min_p cuts: each rank draws from its own columns, the best draw wins."""
        ids = torch.arange(logits.shape[1])[None] + self._offset
        scaled = scale(logits, tensors.temperatures)
        kept = keep_min_p(scaled, largest / tensors.temperatures, tensors.log_min_p)
        columns, scores = draw(scaled, ids, kept, tensors.seeds, tensors.positions)
        values = logits.gather(1, columns[:, None])[:, 0].double()
        return self._exchange.best(scores, columns + self._offset, values)

    def _draw_from_found(
        self, logits: Tensor, found: Ordered, tensors: DrawTensors, rows: Sequence[DrawRow]
    ) -> tuple[Tensor, Tensor]:
        """Ids [n] and logits [n] of rows with a top_k or a nucleus, n rows of candidates."""
        totals: list[int | None] = [None] * len(rows)
        open_ended = [place for place, row in enumerate(rows) if row.needs_total]
        if open_ended:
            index = torch.tensor(open_ended)
            largest = found.logits[index, 0] / tensors.temperatures[index]
            own = masses(scale(logits[index], tensors.temperatures[index]), largest).sum(dim=1)
            for place, total in zip(open_ended, self._exchange.sum_integers(own).tolist(), strict=True):
                totals[place] = total
        ids, values, is_proven = _cut_and_draw(found, tensors, [row.params.top_p for row in rows], totals)
        beyond = [place for place in open_ended if not is_proven[place]]
        if beyond:
            index = torch.tensor(beyond)
            shares = [rows[place].params.top_p for place in beyond]
            whole = self._exchange.whole(logits[index])
            ids[index], values[index], _ = _cut_and_draw(whole, tensors.select(index), shares, [None] * len(beyond))
        return ids, values


def _num_candidates(row: DrawRow, columns: int) -> int:
    """Candidates that a rank sends for a row; the largest logit always travels."""
    if row.is_greedy or row.draws_from_all:
        return 1
    return min(row.params.top_k or NUCLEUS_CANDIDATES, columns)


def _cut_and_draw(
    found: Ordered, tensors: DrawTensors, top_p: Sequence[float], totals: Sequence[int | None]
) -> tuple[Tensor, Tensor, list[bool]]:
    """Ids [n] and logits [n] drawn from sorted candidates, and whether they hold the whole nucleus.

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
    ids, values = (part.gather(1, columns[:, None])[:, 0] for part in (found.ids, found.logits))
    return ids, values, [own >= need for own, need in zip(sums, wanted.tolist(), strict=True)]


def _answers(ids: Tensor, values: Tensor, raw: RawScores | None, rows: Sequence[DrawRow]) -> list[DrawnToken]:
    if raw is None:
        return [DrawnToken(token_id, None) for token_id in ids.tolist()]
    logprobs = token_logprobs(values, raw, [row.num_top_logprobs or 0 for row in rows])
    return [
        DrawnToken(token_id, None if row.num_top_logprobs is None else entry)
        for token_id, entry, row in zip(ids.tolist(), logprobs, rows, strict=True)
    ]


def token_logprobs(logits: Tensor, raw: RawScores, num_top: Sequence[int]) -> list[TokenLogprobs]:
    """One entry for each row: the log probability of the token whose raw logit is given [T], and num_top others."""
    own = (logits - raw.log_sums).tolist()
    top_ids = raw.top.ids.tolist()
    top = (raw.top.logits - raw.log_sums[:, None]).tolist()
    return [
        TokenLogprobs(logprob, tuple(ids[:count]), tuple(values[:count]))
        for logprob, ids, values, count in zip(own, top_ids, top, num_top, strict=True)
    ]
