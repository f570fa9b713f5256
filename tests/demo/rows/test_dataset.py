"""The dataset: batches for a DataLoader, other documents for every worker, rank and run."""

from dataclasses import replace
from itertools import islice

import pytest
import torch
from tokenizers import Tokenizer
from torch.utils.data import DataLoader

from twinspark_demo.documents.mixture import LONG, SHORT
from twinspark_demo.row_batch import TokenClass
from twinspark_demo.rows.dataset import PADDING_ID, RowDataset, RowTensors, Stream, worker_seed
from twinspark_demo.rows.tokenizer import COMMITTED_TOKENIZER

STREAM = Stream(SHORT, row_tokens=1024, rows=6, tokenizer_path=COMMITTED_TOKENIZER, name="a 0", seed=5)
TOKENIZER = Tokenizer.from_file(str(COMMITTED_TOKENIZER))


def take(stream: Stream, count: int) -> list[RowTensors]:
    return list(islice(RowDataset(stream), count))


def test_padding_is_the_end_of_text() -> None:
    assert TOKENIZER.token_to_id("<|endoftext|>") == PADDING_ID


def test_batches_have_the_shapes_and_types_of_rows() -> None:
    for batch in take(STREAM, 3):
        assert [tensor.shape for tensor in batch] == [(6, 1024)] * 4
        assert [tensor.dtype for tensor in batch] == [torch.int16, torch.uint8, torch.int16, torch.int16]
        assert (batch.positions[:, 0] == 0).all()
        assert (batch.documents[:, 0] == 0).all()


@pytest.mark.parametrize(("mixture", "row_tokens"), [(SHORT, 1024), (LONG, 9216)])
def test_each_document_of_a_row_begins_and_ends_as_one(mixture: dict[str, float], row_tokens: int) -> None:
    first, ends = TOKENIZER.token_to_id("[gMASK]"), [TOKENIZER.token_to_id(t) for t in ("<|user|>", "<|observation|>")]
    (batch,) = take(replace(STREAM, mixture=mixture, row_tokens=row_tokens), 1)
    for tokens, documents, classes in zip(batch.tokens, batch.documents, batch.classes, strict=True):
        for number in range(int(documents.max()) + 1):
            here = documents == number
            kept = tokens[here][tokens[here] != PADDING_ID]
            assert int(kept[0]) == first
            assert int(kept[-1]) in ends
            assert (classes[here][len(kept) :] == TokenClass.SILENT).all()
            assert (tokens[here][len(kept) :] == PADDING_ID).all()


def test_rows_are_nearly_full() -> None:
    batches = take(STREAM, 6)
    free = sum(int((batch.tokens[:, -48:] == PADDING_ID).all(dim=1).sum()) for batch in batches)
    padding = sum(int((batch.tokens == PADDING_ID).sum()) for batch in batches)
    assert free <= 2
    assert padding < 0.09 * 6 * 6 * 1024  # most of it is the way to the next multiple of 16


def test_the_same_stream_gives_the_same_rows() -> None:
    for first, second in zip(take(STREAM, 2), take(STREAM, 2), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_another_name_seed_rank_worker_or_first_step_gives_other_documents() -> None:
    streams = [
        STREAM,
        replace(STREAM, name="b 0"),
        replace(STREAM, seed=6),
        replace(STREAM, rank=1),
        replace(STREAM, first_step=1),
    ]
    seeds = {worker_seed(stream, worker) for stream in streams for worker in range(14)}
    assert len(seeds) == len(streams) * 14
    rows = {tuple(row.tolist()) for stream in streams for row in take(stream, 1)[0].tokens}
    assert len(rows) == len(streams) * 6


def test_workers_of_a_loader_have_documents_of_their_own() -> None:
    loader = DataLoader(RowDataset(STREAM), batch_size=None, num_workers=2)
    batches = list(islice(loader, 4))
    assert all(isinstance(batch, RowTensors) for batch in batches)
    assert len({tuple(row.tolist()) for batch in batches for row in batch.tokens}) == 4 * 6
    assert torch.equal(batches[0].tokens, take(STREAM, 1)[0].tokens)
