"""Token masks on this rank's columns of the logits."""

from collections.abc import Sequence

import torch
from torch import Tensor

from twinspark_engine.runner.sampling.rows import DrawRow
from twinspark_engine.runner.sampling.vocabulary import VocabularySlice

WORD_BITS, WORD_BYTES = 32, 4


class TokenMasks:
    """The words of the rows of a step that cover this rank's columns: allocated once, written in place."""

    def __init__(self, vocabulary: VocabularySlice, max_rows: int) -> None:
        first, end = vocabulary.first_id, vocabulary.first_id + vocabulary.num_columns
        first_word, end_word = first // WORD_BITS, -(-end // WORD_BITS)
        self._bytes = slice(first_word * WORD_BYTES, end_word * WORD_BYTES)
        skipped = first - first_word * WORD_BITS
        self._columns = slice(skipped, skipped + vocabulary.num_columns)
        self._words = torch.zeros(max_rows, end_word - first_word, dtype=torch.int32)
        self._raw = tuple(row.view(torch.uint8).numpy().data for row in self._words)
        self._shifts = torch.arange(WORD_BITS, dtype=torch.int32)

    def apply(self, logits: Tensor, rows: Sequence[DrawRow]) -> None:
        """Put -inf into logits [T, columns] of the ids that rows with a mask do not allow; other rows are untouched."""
        places = [place for place, row in enumerate(rows) if row.mask is not None]
        for raw, place in zip(self._raw, places, strict=False):
            mask = rows[place].mask
            assert mask is not None
            raw[:] = mask[self._bytes]
        bits = self._words[: len(places), :, None] >> self._shifts & 1
        is_masked = bits.flatten(1)[:, self._columns] == 0
        index = torch.tensor(places)
        logits.index_copy_(0, index, logits[index].masked_fill_(is_masked, -torch.inf))

    def data_pointers(self) -> tuple[int, ...]:
        """Address of the words, which never changes."""
        return (self._words.data_ptr(),)
