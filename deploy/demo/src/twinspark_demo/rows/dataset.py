"""Dataset: an endless stream of batches of packed rows, made as they are asked for."""

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.utils.data import IterableDataset, get_worker_info

from twinspark_demo.documents.mixture import conversations
from twinspark_demo.row_batch import RowBatch
from twinspark_demo.rows.encode import Document, Encoder
from twinspark_demo.rows.packing import pack_rows, to_batch
from twinspark_tools.tiny_checkpoint import SHAPES

PADDING_ID = SHAPES["demo"].special_id("<|endoftext|>")
_ENCODED_AT_ONCE = 64
_ROOM = 16  # tokens of a row that a document's budget leaves: a budget is an estimate
_LONGEST_BUDGET = 9000


class RowTensors(NamedTuple):
    """A RowBatch as tensors [B, T]; a data loader can pin it."""

    tokens: Tensor  # int16
    classes: Tensor  # uint8
    documents: Tensor  # int16
    positions: Tensor  # int16


@dataclass(frozen=True, slots=True)
class Stream:
    """What is drawn, and which of the streams of random documents; two that differ share no documents."""

    mixture: Mapping[str, float]
    row_tokens: int
    rows: int  # of a batch
    tokenizer_path: Path
    name: str  # of the stage and feed that it is for
    seed: int = 0
    rank: int = 0
    first_step: int = 0  # of this run: a run that resumes sees fresh documents


class RowDataset(IterableDataset[RowTensors]):
    """Batches of packed rows for a DataLoader with `batch_size=None`; each worker process has its own documents."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[RowTensors]:
        info = get_worker_info()
        yield from _batches(self._stream, 0 if info is None else info.id)


def worker_seed(stream: Stream, worker: int) -> int:
    """The seed of one worker's documents, 0 .. 2**63 - 1."""
    key = f"{stream.seed} {stream.name} {stream.rank} {stream.first_step} {worker}"
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest()) >> 1


def document_budget(row_tokens: int) -> int:
    """Tokens that a document may have in rows of that length."""
    return min(row_tokens - _ROOM, _LONGEST_BUDGET)


def _batches(stream: Stream, worker: int) -> Iterator[RowTensors]:
    rows = pack_rows(_documents(stream, worker), stream.row_tokens)
    while True:
        yield to_tensors(to_batch(list(islice(rows, stream.rows)), stream.row_tokens, PADDING_ID))


def _documents(stream: Stream, worker: int) -> Iterator[Document]:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # every core has its worker already
    encoder = Encoder.load(stream.tokenizer_path)
    drawn = conversations(worker_seed(stream, worker), stream.mixture, document_budget(stream.row_tokens))
    while True:
        yield from encoder.encode(list(islice(drawn, _ENCODED_AT_ONCE)))


def to_tensors(batch: RowBatch) -> RowTensors:
    """The same memory as tensors."""
    return RowTensors(
        *(torch.from_numpy(array) for array in (batch.tokens, batch.classes, batch.documents, batch.positions))
    )
