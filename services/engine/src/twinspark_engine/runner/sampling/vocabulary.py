"""The slice of the vocabulary whose logits a rank holds."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class VocabularySlice:
    """Column c of this rank's logits belongs to token id first_id + c."""

    first_id: int
    num_columns: int

    def column(self, token_id: int) -> int | None:
        """The id's column; None where another rank holds it."""
        column = token_id - self.first_id
        return column if 0 <= column < self.num_columns else None

    def columns(self, token_ids: Iterable[int]) -> Tensor:
        """int64 [n]: columns of those ids that this rank holds, in their order."""
        columns = torch.tensor(tuple(token_ids), dtype=torch.int64) - self.first_id
        return columns[(columns >= 0) & (columns < self.num_columns)]
