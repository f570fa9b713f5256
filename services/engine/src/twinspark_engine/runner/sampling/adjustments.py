"""What a request's parameters and its tokens so far do to its logits before the draw: penalties, logit_bias, masks.

A pure function of the row's logits, the request and the tokens before the row: prompt, committed output, and the drafts
on the row's own path. Each slot has counts of its tokens on this rank's columns, updated by one addition for each
committed token, so that a step costs one pass over a row's columns whatever the length of the history.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from twinspark_engine.request import Request
from twinspark_engine.runner.sampling.rows import DrawRow, DrawTensors
from twinspark_engine.runner.sampling.vocabulary import VocabularySlice

SLOT_COLUMN_BYTES = 14
"""Bytes of the tables for one slot and one column of the rank."""
LARGEST_LOGIT = torch.finfo(torch.float32).max


class LogitAdjustments:
    """Called by the runner at every admission and commit, and by the sampler at every draw, on every rank alike."""

    def __init__(
        self,
        vocabulary: VocabularySlice,
        num_slots: int,
        end_token_ids: frozenset[int],
        masked_token_ids: frozenset[int],
    ) -> None:
        """end_token_ids are masked while min_tokens asks for it, masked_token_ids always."""
        shape = num_slots, vocabulary.num_columns
        self._vocabulary = vocabulary
        self._end_columns = vocabulary.columns(sorted(end_token_ids))
        self._masked_columns = vocabulary.columns(sorted(masked_token_ids))
        self._output_counts = torch.zeros(shape, dtype=torch.int32)
        self._is_in_prompt = torch.zeros(shape, dtype=torch.bool)
        self._is_end = torch.zeros(shape, dtype=torch.bool)
        self._bias = torch.zeros(shape, dtype=torch.float64)
        self._counting_slots: set[int] = set()

    @property
    def nbytes(self) -> int:
        """Bytes of the slots' tables: SLOT_COLUMN_BYTES for each slot and column."""
        return sum(table.nbytes for table in self._tables())

    def admit(self, slot: int, request: Request) -> None:
        """Forget the slot's last request and count this one's prompt. O(prompt + columns), once for each request."""
        for table in self._tables():
            table[slot].zero_()
        self._is_end[slot, self._end_columns] = True
        self._is_end[slot, self._vocabulary.columns(request.limits.stop_token_ids)] = True
        self._set_bias(slot, request.sampling.logit_bias)
        self._counting_slots.discard(slot)
        if request.sampling.has_penalties:
            self._counting_slots.add(slot)
            self._is_in_prompt[slot, self._vocabulary.columns(request.prompt_token_ids)] = True
            prior = self._vocabulary.columns(request.prior_output_token_ids)
            self._output_counts[slot] = prior.bincount(minlength=self._vocabulary.num_columns)

    def commit(self, slot: int, token_id: int) -> None:
        """Count an output token. O(1)."""
        column = self._vocabulary.column(token_id)
        if column is not None and slot in self._counting_slots:
            self._output_counts[slot, column] += 1

    def apply(self, logits: Tensor, rows: Sequence[DrawRow], tensors: DrawTensors) -> Tensor:
        """The logits [T, columns] to draw from, -inf for ids that may not be drawn, given those of the model."""
        places = [place for place, row in enumerate(rows) if row.is_adjusted]
        if places:
            index = torch.tensor(places)
            adjusted = self._adjust(logits[index].double(), [rows[place] for place in places], tensors.select(index))
            logits = logits.float().index_copy(0, index, adjusted)
        if self._masked_columns.numel():
            logits = logits.index_fill(1, self._masked_columns, -torch.inf)
        return logits

    def data_pointers(self) -> tuple[int, ...]:
        """Addresses of the slots' tables, which never change."""
        return tuple(table.data_ptr() for table in self._tables())

    def _tables(self) -> tuple[Tensor, ...]:
        return self._output_counts, self._is_in_prompt, self._is_end, self._bias

    def _adjust(self, logits: Tensor, rows: Sequence[DrawRow], tensors: DrawTensors) -> Tensor:
        counts = self._output_counts[tensors.slots]
        self._count_paths(counts, rows)
        penalized = penalize(logits, counts, self._is_in_prompt[tensors.slots], tensors)
        adjusted = (penalized + self._bias[tensors.slots]).clamp(-LARGEST_LOGIT, LARGEST_LOGIT)
        # A broken logit stays broken, so that the sampler refuses it; no parameter makes a logit infinite.
        adjusted = torch.where(logits.isfinite(), adjusted, logits)
        is_masked = self._is_end[tensors.slots] & tensors.masks_ends.bool()[:, None]
        return adjusted.float().masked_fill(is_masked, -torch.inf)

    def _count_paths(self, counts: Tensor, rows: Sequence[DrawRow]) -> None:
        """Add the drafts before each row to its counts [n, columns]."""
        places = [
            (place, column)
            for place, row in enumerate(rows)
            for token_id in row.path
            if (column := self._vocabulary.column(token_id)) is not None
        ]
        if places:
            index = torch.tensor(places)
            counts.index_put_((index[:, 0], index[:, 1]), torch.ones((), dtype=counts.dtype), accumulate=True)

    def _set_bias(self, slot: int, logit_bias: Sequence[tuple[int, float]]) -> None:
        own = {
            column: bias for token_id, bias in logit_bias if (column := self._vocabulary.column(token_id)) is not None
        }
        if own:
            self._bias[slot, torch.tensor(list(own))] = torch.tensor(list(own.values()), dtype=torch.float64)


def penalize(logits: Tensor, output_counts: Tensor, is_in_prompt: Tensor, tensors: DrawTensors) -> Tensor:
    """float64 [n, columns] of float64 logits [n, columns], given how often each id stands in the output.

    repetition_penalty divides a positive logit and multiplies another, of ids in prompt or output (Keskar et al. 2019,
    section 4.1, with the rule for signs of Transformers and vLLM). Then frequency_penalty is subtracted for each time
    that the output holds the id, and presence_penalty once if it does (OpenAI's API reference).
    """
    is_in_output = output_counts > 0
    repetition = tensors.repetition[:, None]
    repeated = torch.where(logits > 0, logits / repetition, logits * repetition)
    logits = torch.where(is_in_prompt | is_in_output, repeated, logits)
    # Products are rounded before they are subtracted: a fused multiply-add would depend on the place in the row.
    logits = logits - tensors.frequency[:, None] * output_counts
    return logits - tensors.presence[:, None] * is_in_output
