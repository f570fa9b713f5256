"""What the model reads right on pictures that no step learns from, by kind: whole replies.

Every answer token must be the most likely one given the true text before it, which for a reply that is a function of
its prompt is the same as a right greedy reply.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from twinspark_demo.pictures.conversations import KINDS
from twinspark_demo.row_batch import TokenClass
from twinspark_demo.rows.encode import Encoder
from twinspark_demo.training.check import SEED
from twinspark_demo.training.vision.batch import VisionBatch
from twinspark_demo.training.vision.dataset import documents
from twinspark_demo.training.vision.packing import BatchShape, VisionTensors, pack
from twinspark_demo.training.vision.step import VisionStep


@dataclass(frozen=True, slots=True)
class Reading:
    """Whole replies of one kind."""

    kind: str
    asked: int
    right: int

    @property
    def share(self) -> float:
        """0 to 1."""
        return self.right / max(self.asked, 1)


class HeldOut:
    """Batches of one kind each, drawn once."""

    def __init__(self, shape: BatchShape, tokenizer: Path, batches: int) -> None:
        encoder = Encoder.load(tokenizer)
        self._batches = {
            kind: list(islice(pack(documents(encoder, SEED + place, {kind: 1.0}), shape), batches))
            for place, kind in enumerate(KINDS)
        }

    def judge(self, step: VisionStep, batch: VisionBatch, batches: int) -> Iterator[Reading]:
        """Each kind's line, from so many of its batches; the step's own rows are lost."""
        for kind, held in self._batches.items():
            yield _reading(kind, held[:batches], step, batch)


def _reading(kind: str, held: Sequence[VisionTensors], step: VisionStep, batch: VisionBatch) -> Reading:
    asked = right = 0
    for rows in held:
        batch.fill(rows)
        said = step.judge().numpy()
        answer = rows.classes.numpy() == TokenClass.ANSWER
        numbers = rows.documents.numpy().astype(np.int64)
        keys = np.arange(len(numbers))[:, None] * (int(numbers.max()) + 1) + numbers
        found, wrong = np.unique(keys[answer]), np.unique(keys[answer & ~said])
        asked, right = asked + len(found), right + len(found) - len(wrong)
    return Reading(kind, asked, right)
