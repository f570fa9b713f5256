"""Packed rows as the model takes them: from worker processes, on the device, with a loss weight for each token."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

import torch
from torch.utils.data import DataLoader, IterableDataset

from twinspark_demo.row_batch import TokenClass
from twinspark_demo.rows.dataset import RowTensors
from twinspark_demo.training.model import TrainingBatch

BatchT = TypeVar("BatchT")


def empty_batch(rows: int, row_tokens: int, device: torch.device) -> TrainingBatch:
    """Buffers that every step's rows are copied into; a valid batch of one document a row."""
    shape = (rows, row_tokens)
    positions = torch.arange(row_tokens, device=device).expand(shape).contiguous()
    return TrainingBatch(
        tokens=torch.zeros(shape, dtype=torch.int64, device=device),
        weights=torch.ones(shape, dtype=torch.float32, device=device),
        documents=torch.zeros(shape, dtype=torch.int64, device=device),
        positions=positions,
    )


class BatchFiller:
    """Copies host rows into a batch's buffers, without waiting for the device."""

    def __init__(self, weights: Mapping[TokenClass, float], device: torch.device) -> None:
        self._weights = torch.tensor([weights[token_class] for token_class in sorted(weights)], device=device)

    def fill(self, batch: TrainingBatch, rows: RowTensors) -> None:
        """batch becomes rows; the first token of a document has no weight, nothing predicts it."""
        device = batch.tokens.device
        batch.tokens.copy_(rows.tokens.to(device, non_blocking=True))
        batch.documents.copy_(rows.documents.to(device, non_blocking=True))
        batch.positions.copy_(rows.positions.to(device, non_blocking=True))
        classes = rows.classes.to(device, non_blocking=True).long()
        batch.weights.copy_(self._weights[classes] * (batch.positions > 0))


def iterate_batches(
    dataset: IterableDataset[BatchT], workers: int, device: torch.device, prefetch: int = 4
) -> Iterator[BatchT]:
    """The batches, made by worker processes that are each `prefetch` batches ahead; with 0 workers by this process."""
    loader = DataLoader(
        dataset,
        batch_size=None,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        prefetch_factor=prefetch if workers else None,
    )
    return iter(loader)
