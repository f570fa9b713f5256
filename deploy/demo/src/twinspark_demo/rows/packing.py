"""Packing: documents to rows of one length, whole and with little waste."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from twinspark_demo.row_batch import RowBatch, TokenClass
from twinspark_demo.rows.encode import Document

ALIGNMENT = 16  # a document starts where a KDA chunk does
_WAITING = 128  # documents to choose from


def pack_rows(documents: Iterable[Document], row_tokens: int) -> Iterator[list[Document]]:
    """The documents of one row after another, each row as full as the waiting documents allow.

    Of the waiting documents the oldest that fits is taken, so none waits for ever. A document longer than a row is
    dropped; the documents that do not fill a row at the end are too. row_tokens: a multiple of 16.
    """
    source = (document for document in documents if 0 < len(document.ids) <= row_tokens)
    waiting: list[Document] = []
    row: list[Document] = []
    used = 0
    for document in source:
        waiting.append(document)
        if len(waiting) < _WAITING:
            continue
        while (chosen := _first_that_fits(waiting, row_tokens - used)) is None:
            yield row
            row, used = [], 0
        row.append(waiting.pop(chosen))
        used += _aligned(len(row[-1].ids))


def to_batch(rows: Sequence[Sequence[Document]], row_tokens: int, padding_id: int) -> RowBatch:
    """B rows [B, T] of the documents; gaps hold padding_id, SILENT, and belong to the document before them."""
    shape = (len(rows), row_tokens)
    batch = RowBatch(
        tokens=np.full(shape, padding_id, np.int16),
        classes=np.full(shape, TokenClass.SILENT, np.uint8),
        documents=np.zeros(shape, np.int16),
        positions=np.zeros(shape, np.int16),
    )
    counts = np.arange(row_tokens, dtype=np.int16)
    for index, row in enumerate(rows):
        start = 0
        for number, document in enumerate(row):
            end = start + len(document.ids)
            batch.tokens[index, start:end] = document.ids
            batch.classes[index, start:end] = document.classes
            batch.documents[index, start:] = number
            batch.positions[index, start:] = counts[: row_tokens - start]
            start += _aligned(len(document.ids))
    return batch


def _first_that_fits(waiting: Sequence[Document], room: int) -> int | None:
    return next((index for index, document in enumerate(waiting) if len(document.ids) <= room), None)


def _aligned(length: int) -> int:
    return -(-length // ALIGNMENT) * ALIGNMENT
