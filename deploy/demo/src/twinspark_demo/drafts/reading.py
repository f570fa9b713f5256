"""Reads right replies through the model: one forward gives what it says and drafts at every place."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from twinspark_demo.drafts.drafted import NO_DRAFT, Drafted
from twinspark_demo.drafts.replies import Reply
from twinspark_demo.rows.packing import ALIGNMENT, to_batch
from twinspark_demo.training.model import ForwardOptions, Predictions, TrainingBatch

DEPTHS = 3
TOKENS_AT_ONCE = 4096  # of a forward; a longer document is read alone
_PADDING_ID = 0  # any token: no row before it sees it

Predict = Callable[[TrainingBatch, ForwardOptions], Predictions]
"""`DemoModel.predictions`, or what stands for it."""


@torch.no_grad()
def read_replies(predict: Predict, replies: Sequence[Reply], never_drawn: frozenset[int]) -> list[Drafted]:
    """One for each reply, in their order. never_drawn: ids that neither the model nor its drafts say."""
    found: dict[int, Drafted] = {}
    for places in _batches([len(reply.document.ids) for reply in replies]):
        batch = _training_batch([replies[place] for place in places])
        predictions = predict(batch, ForwardOptions(sparse=True, mtp_depth=DEPTHS))
        for row, place in enumerate(places):
            found[place] = _read(predictions, row, replies[place], sorted(never_drawn))
    return [found[place] for place in range(len(replies))]


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Places of documents that are read together, of like lengths."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[place] > TOKENS_AT_ONCE:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _training_batch(replies: Sequence[Reply]) -> TrainingBatch:
    """A document a row, padded at their ends."""
    longest = max(len(reply.document.ids) for reply in replies)
    padded = -(-longest // ALIGNMENT) * ALIGNMENT
    rows = to_batch([[reply.document] for reply in replies], padded, _PADDING_ID)
    tokens, documents, positions = (
        torch.from_numpy(array).long() for array in (rows.tokens, rows.documents, rows.positions)
    )
    return TrainingBatch(tokens, torch.zeros(tokens.shape), documents, positions)


def _read(predictions: Predictions, row: int, reply: Reply, never_drawn: list[int]) -> Drafted:
    """The token of document row i is what the main row i - 1 and the MTP rows i - 2 of all depths predict."""
    count = len(reply.tokens)
    drafts = np.full((DEPTHS, count), NO_DRAFT, dtype=np.int64)
    for depth, logits in enumerate(predictions.mtp_logits, 1):
        drafts[depth - 1, depth:] = _most_likely(logits[row], reply.start + depth - 2, count - depth, never_drawn)
    said = _most_likely(predictions.logits[row], reply.start - 1, count, never_drawn)
    return Drafted(reply.tokens.astype(np.int64), said, drafts)


def _most_likely(logits: Tensor, first: int, count: int, never_drawn: list[int]) -> NDArray[np.int64]:
    """logits [T, V] -> int64 [count], of the rows from `first` on."""
    drawn = logits[first : first + max(count, 0)].clone()
    drawn[:, never_drawn] = -torch.inf
    return drawn.argmax(-1).numpy()
