"""Packing: whole documents at multiples of 16, in rows that are nearly full."""

from itertools import islice, pairwise
from random import Random

import numpy as np
import pytest

from twinspark_demo.row_batch import RowBatch, TokenClass
from twinspark_demo.rows.encode import Document
from twinspark_demo.rows.packing import pack_rows, to_batch

PADDING = 1988


def documents(lengths: list[int]) -> list[Document]:
    """Documents of these lengths; token ids say which document and class, so that each can be found again."""
    made = []
    for number, length in enumerate(lengths):
        ids = np.arange(length, dtype=np.int16) % 97 + 100 * (number % 19)
        made.append(Document(ids.astype(np.int16), (ids % 3).astype(np.uint8)))
    return made


def lengths_of(seed: int, count: int, longest: int) -> list[int]:
    rng = Random(seed)
    return [min(int(2 ** rng.uniform(4, 9)), longest) for _ in range(count)]


def cut(batch: RowBatch) -> list[list[tuple[list[int], list[int], int]]]:
    """For each row its documents with the gaps after them: tokens, classes, start. Read from positions alone."""
    rows = []
    for tokens, classes, positions in zip(batch.tokens, batch.classes, batch.positions, strict=True):
        starts = [*np.flatnonzero(positions == 0).tolist(), len(tokens)]
        rows.append(
            [(tokens[start:end].tolist(), classes[start:end].tolist(), start) for start, end in pairwise(starts)]
        )
    return rows


def test_every_document_is_found_again_whole_and_once() -> None:
    given = documents(lengths_of(1, 900, 500))
    rows = list(pack_rows(given, 512))
    found = cut(to_batch(rows, 512, PADDING))
    packed = [document for row in rows for document in row]
    assert len({id(document) for document in packed}) == len(packed) > 700
    for row, blocks in zip(rows, found, strict=True):
        assert len(row) == len(blocks)
        for document, (tokens, classes, start) in zip(row, blocks, strict=True):
            length = len(document.ids)
            assert start % 16 == 0
            assert tokens == document.ids.tolist() + [PADDING] * (len(tokens) - length)
            assert classes == document.classes.tolist() + [TokenClass.SILENT] * (len(tokens) - length)


def test_documents_are_numbered_and_positions_counted_through_the_padding() -> None:
    batch = to_batch([documents([5, 17]), documents([16])], 64, PADDING)
    assert batch.documents.tolist() == [[0] * 16 + [1] * 48, [0] * 64]
    assert batch.positions.tolist() == [[*range(16), *range(48)], [*range(64)]]
    assert (batch.tokens[0, 5:16] == PADDING).all()
    assert (batch.tokens[1, 16:] == PADDING).all()
    dtypes = [array.dtype for array in (batch.tokens, batch.classes, batch.documents, batch.positions)]
    assert dtypes == [np.int16, np.uint8, np.int16, np.int16]


def test_a_document_longer_than_a_row_is_dropped_and_one_as_long_is_kept() -> None:
    rows = list(pack_rows(documents([65, 64] * 200), 64))
    assert len(rows) > 50
    assert all([len(document.ids) for document in row] == [64] for row in rows)


@pytest.mark.parametrize(("row_tokens", "longest"), [(1024, 500), (1024, 1008), (9216, 9000)])
def test_rows_have_little_room_left(row_tokens: int, longest: int) -> None:
    rng = Random(2)
    lengths = [min(int(2 ** rng.uniform(5, 13 if rng.random() < 0.2 else 8)), longest) for _ in range(6000)]
    rows = list(islice(pack_rows(documents(lengths), row_tokens), 100))
    taken = sum(-(-len(document.ids) // 16) * 16 for row in rows for document in row)
    assert taken > 0.98 * row_tokens * len(rows)


def test_no_document_waits_for_ever() -> None:
    given = documents([1000, *[16] * 5000])
    rows = list(islice(pack_rows(given, 1024), 5))
    assert any(document is given[0] for row in rows for document in row)
