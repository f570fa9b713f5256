"""VisionBatch: one batch on the device, in buffers that keep their place."""

from dataclasses import dataclass

import torch
from torch import Tensor

from twinspark_demo.pictures.marks import ANSWER_SIZES
from twinspark_demo.row_batch import TokenClass
from twinspark_demo.rows.dataset import RowTensors
from twinspark_demo.training.batches import BatchFiller, empty_batch
from twinspark_demo.training.model import TrainingBatch
from twinspark_demo.training.vision.packing import MERGED, BatchShape, VisionTensors
from twinspark_demo.vision import TowerInput

CLASS_WEIGHTS = {TokenClass.SILENT: 0.0, TokenClass.PROMPT: 0.0, TokenClass.ANSWER: 1.0}


@dataclass
class VisionBatch:
    """What one step reads; M merged rows, P pictures."""

    text: TrainingBatch
    tower: TowerInput  # images: index of the picture within the batch
    targets: Tensor  # int64 [M] flat index of the token in whose place a merged row stands; B T: none
    things: Tensor  # int64 [M]
    answers: Tensor  # int64 [P, 5]

    @classmethod
    def empty(cls, shape: BatchShape, device: torch.device) -> "VisionBatch":
        """Buffers for batches of that shape."""
        patches = (shape.sequences, MERGED * shape.sequence_rows)
        merged = shape.sequences * shape.sequence_rows

        def integers(*sizes: int) -> Tensor:
            return torch.zeros(sizes, dtype=torch.int64, device=device)

        return cls(
            empty_batch(shape.rows, shape.row_tokens, device),
            TowerInput(
                torch.zeros(*patches, 588, dtype=torch.uint8, device=device),
                torch.zeros(*patches, 2, dtype=torch.int16, device=device),
                torch.zeros(*patches, dtype=torch.int16, device=device),
            ),
            integers(merged),
            integers(merged),
            integers(shape.pictures, len(ANSWER_SIZES)),
        )

    def fill(self, rows: VisionTensors) -> None:
        """The buffers become these rows; does not wait for the device."""
        device = self.targets.device
        text = RowTensors(rows.tokens, rows.classes, rows.documents, rows.positions)
        BatchFiller(CLASS_WEIGHTS, device).fill(self.text, text)
        pairs = (
            (self.tower.values, rows.values),
            (self.tower.places, rows.places),
            (self.tower.images, rows.images),
            (self.targets, rows.targets),
            (self.things, rows.things),
            (self.answers, rows.answers),
        )
        for buffer, values in pairs:
            buffer.copy_(values.to(device, non_blocking=True))
