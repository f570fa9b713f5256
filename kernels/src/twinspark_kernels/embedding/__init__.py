"""Token embedding, with image embeddings in the rows that have one. CPU tensors run the reference.

CONTRACT.md, where it differs from the common answers:
1. Inputs: an id past the table raises IndexError.
3. Arithmetic: none; rows are copied, image rows rounded to the dtype of the table.
"""

import torch

from twinspark_kernels.embedding import reference
from twinspark_kernels.embedding.reference import ImageRows

__all__ = ["ImageRows", "embed"]


def embed(ids: torch.Tensor, table: torch.Tensor, image_rows: ImageRows | None) -> torch.Tensor:
    """Return table[ids] with image rows put in place: [T, D] in the dtype of `table`, always a new tensor.

    ids [T] int64, each below the number of table rows (a larger one raises IndexError); table [V, D].
    """
    if ids.dim() != 1 or ids.dtype != torch.int64:
        raise ValueError(f"ids: must be int64 [rows], got {ids.dtype} {list(ids.shape)}")
    if table.dim() != 2:
        raise ValueError(f"table: must be [vocabulary, hidden], got shape {tuple(table.shape)}")
    if image_rows is not None:
        expected = (image_rows.places.shape[0], table.shape[1])
        if image_rows.places.dim() != 1 or image_rows.values.shape != expected:
            raise ValueError(
                f"image_rows: values must be {list(expected)}, one for each place, got {list(image_rows.values.shape)}"
            )
    return reference.embed(ids, table, image_rows)
