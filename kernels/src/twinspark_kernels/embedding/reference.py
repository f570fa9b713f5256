"""Definition of the embedding: a copy of table rows; image embeddings replace whole rows."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class ImageRows:
    """Image embeddings of one forward: `values` [N, D] go to the rows `places` [N] int64 of the forward."""

    places: torch.Tensor
    values: torch.Tensor


def embed(ids: torch.Tensor, table: torch.Tensor, image_rows: ImageRows | None) -> torch.Tensor:
    """[T, D] in the dtype of table."""
    rows = table.index_select(0, ids)
    if image_rows is not None:
        rows.index_copy_(0, image_rows.places, image_rows.values.to(table.dtype))
    return rows
