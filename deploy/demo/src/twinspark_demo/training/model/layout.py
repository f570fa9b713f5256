"""Where documents begin in packed rows, and who may see whom. A pool of 4 rows never crosses documents."""

from dataclasses import dataclass

import torch
from torch import Tensor

from twinspark_demo.training.model.batch import TrainingBatch


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Facts about [B, T] rows that every layer shares."""

    positions: Tensor  # int64 [B, T] within the document
    starts: Tensor  # bool [B, T] first row of a document
    first: Tensor  # int64 [B, T] row index of the document's first row
    visible: Tensor  # bool [B, T queries, T keys]: same document and not later

    @classmethod
    def of(cls, batch: TrainingBatch) -> "RowLayout":
        """From positions and documents; no value is read on the host."""
        positions = batch.positions.long()
        rows = torch.arange(positions.shape[1], device=positions.device)
        first = rows - positions
        same = batch.documents[:, :, None] == batch.documents[:, None, :]
        return cls(positions, positions == 0, first, same & (rows[None, :] <= rows[:, None]))

    def candidates(self, queries: Tensor, first: Tensor, pool: int) -> Tensor:
        """bool [B, Q, T / pool]: pools of `queries` [B, Q] (row indices) that are complete, by `first` [B, Q]."""
        starts = torch.arange(0, self.positions.shape[1], pool, device=queries.device)
        return (starts + pool - 1 <= queries[..., None]) & (starts >= first[..., None])


def shift_rows(values: Tensor, by: int) -> Tensor:
    """values [B, T, ...] moved `by` rows later (negative: earlier) within each sequence; what falls out returns."""
    return torch.roll(values, by, dims=1)
