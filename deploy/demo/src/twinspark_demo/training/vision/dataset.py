"""Dataset: an endless stream of batches of pictures and conversations, drawn as they are asked for."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from torch.utils.data import IterableDataset, get_worker_info

from twinspark_demo.pictures.conversations import SHARES, conversations
from twinspark_demo.rows.dataset import Stream, worker_seed
from twinspark_demo.rows.encode import Encoder
from twinspark_demo.training.vision.packing import BatchShape, VisionDocument, VisionTensors, encode, pack

_ENCODED_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class PictureStream:
    """What is drawn, and which of the streams; two that differ share no conversations."""

    shape: BatchShape
    tokenizer_path: Path
    seed: int = 0
    rank: int = 0
    first_step: int = 0  # of this run: a run that resumes sees fresh pictures

    def worker_seed(self, worker: int) -> int:
        """The seed of one worker's conversations."""
        text = Stream(
            mixture={},
            row_tokens=self.shape.row_tokens,
            rows=self.shape.rows,
            tokenizer_path=self.tokenizer_path,
            name="pictures",
            seed=self.seed,
            rank=self.rank,
            first_step=self.first_step,
        )
        return worker_seed(text, worker)


class PictureDataset(IterableDataset[VisionTensors]):
    """Batches for a DataLoader with `batch_size=None`; each worker process has its own conversations."""

    def __init__(self, stream: PictureStream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[VisionTensors]:
        torch.set_num_threads(1)
        info = get_worker_info()
        stream = self._stream
        seed = stream.worker_seed(0 if info is None else info.id)
        yield from pack(documents(Encoder.load(stream.tokenizer_path), seed, SHARES), stream.shape)


def documents(encoder: Encoder, seed: int, shares: Mapping[str, float]) -> Iterator[VisionDocument]:
    """Endless encoded conversations of these kinds."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # noqa: TID251 - every core has its worker already
    drawn = conversations(seed, shares)
    while True:
        yield from encode(encoder, list(islice(drawn, _ENCODED_AT_ONCE)))
