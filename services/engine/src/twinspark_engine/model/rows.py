"""The packed input of one forward: rows of several slots, all of one class."""

from dataclasses import dataclass

import torch
from torch import Tensor

from twinspark_kernels.embedding import ImageRows
from twinspark_kernels.row_class import RowClass
from twinspark_kernels.segments import PADDING_SLOT

__all__ = ["PADDING_SLOT", "Rows"]


@dataclass(frozen=True, slots=True)
class Rows:
    """T rows of one class, one token each.

    Rows of one slot are contiguous, at ascending consecutive positions: a segment. A prompt segment starts at a
    multiple of 64; a decode segment is a window of 1 to 16 rows. Padding rows have slot -1; they write to the trash
    row of each buffer, and what the forward returns for them means nothing.
    """

    row_class: RowClass
    ids: Tensor  # [T] int64 token ids
    slots: Tensor  # [T] int64, PADDING_SLOT for padding
    positions: Tensor  # [T] int64 absolute positions in the slot
    images: ImageRows | None = None
    """Rows in place of the embeddings of image tokens; None: every row is its token's."""

    @property
    def num_rows(self) -> int:
        """Rows of the forward, padding included."""
        return self.ids.shape[0]

    @classmethod
    def segment(cls, row_class: RowClass, ids: Tensor, slot: int, start: int) -> "Rows":
        """One segment: the tokens ids[T] of one slot from position start on."""
        count = ids.shape[0]
        return cls(row_class, ids, torch.full((count,), slot), torch.arange(start, start + count))
