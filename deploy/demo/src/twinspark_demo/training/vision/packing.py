"""Packing: conversations about pictures to batches of one size, tokens and patches alike."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from twinspark_demo.pictures.conversations import PictureConversation
from twinspark_demo.pictures.marks import ANSWER_SIZES, UNKNOWN, answer_numbers, things_of
from twinspark_demo.rows.dataset import PADDING_ID
from twinspark_demo.rows.encode import Document, Encoder
from twinspark_demo.rows.packing import ALIGNMENT, to_batch
from twinspark_demo.vision import Patches, cut_patches
from twinspark_demo.vision.tower import NO_IMAGE
from twinspark_tools.tiny_checkpoint import SHAPES

IMAGE_ID = SHAPES["demo"].special_id("<|image|>")
MERGED = 4
_MISSES = 24  # documents that find no place before a batch is closed


@dataclass(frozen=True, slots=True)
class BatchShape:
    """Sizes of one batch of one process."""

    rows: int
    row_tokens: int  # a multiple of 16
    sequences: int  # of patches
    sequence_rows: int  # merged rows of a sequence: the largest picture's at least
    pictures: int  # at most


class VisionTensors(NamedTuple):
    """A batch on the host; a data loader can pin it. N = 4 x merged rows of a sequence, M = all merged rows."""

    tokens: Tensor  # int16 [B, T]
    classes: Tensor  # uint8 [B, T]
    documents: Tensor  # int16 [B, T]
    positions: Tensor  # int16 [B, T]
    values: Tensor  # uint8 [S, N, 588]
    places: Tensor  # int16 [S, N, 2]
    images: Tensor  # int16 [S, N] index of the picture within the batch, NO_IMAGE for padding
    targets: Tensor  # int32 [M] token, counted through all rows, in whose place a merged row stands; B T: none
    things: Tensor  # uint8 [M] what each merged row shows, see pictures/marks.py
    answers: Tensor  # int16 [P, 5] what each picture answers, UNKNOWN where it does not say


@dataclass(frozen=True, slots=True)
class VisionDocument:
    """An encoded conversation with its cut pictures."""

    document: Document
    patches: Sequence[Patches]
    things: Sequence[NDArray[np.uint8]]
    answers: Sequence[NDArray[np.int64]]


def encode(encoder: Encoder, drawn: Sequence[PictureConversation]) -> list[VisionDocument]:
    """Tokens, with each picture's token repeated for every row that the tower makes of it, and patches."""
    documents = encoder.encode([each.conversation for each in drawn])
    return [_with_pictures(document, each) for document, each in zip(documents, drawn, strict=True)]


def _with_pictures(document: Document, drawn: PictureConversation) -> VisionDocument:
    patches = [cut_patches(picture.image) for picture in drawn.pictures]
    repeats = np.ones(len(document.ids), np.int64)
    repeats[document.ids == IMAGE_ID] = [cut.num_rows for cut in patches]
    grids = [(cut.places.max(0) + 1) // 2 for cut in patches]
    things = [things_of(picture.marks, *map(int, grid)) for picture, grid in zip(drawn.pictures, grids, strict=True)]
    return VisionDocument(
        Document(document.ids.repeat(repeats), document.classes.repeat(repeats)),
        patches,
        things,
        [answer_numbers(picture) for picture in drawn.pictures],
    )


@dataclass(slots=True)
class _Room:
    """What is free in the rows and sequences of the batch that is being filled."""

    shape: BatchShape
    tokens: list[int] = field(init=False)
    merged: list[int] = field(init=False)
    num_pictures: int = 0
    rows: list[list[VisionDocument]] = field(init=False)
    sequences: list[list[Patches]] = field(init=False)

    def __post_init__(self) -> None:
        self.tokens = [self.shape.row_tokens] * self.shape.rows
        self.merged = [self.shape.sequence_rows] * self.shape.sequences
        self.rows = [[] for _ in self.tokens]
        self.sequences = [[] for _ in self.merged]

    def try_add(self, document: VisionDocument) -> bool:
        """Whether the document and all its pictures have found a place; nothing changes otherwise."""
        length = -(-len(document.document.ids) // ALIGNMENT) * ALIGNMENT
        row = _first_that_holds(self.tokens, length)
        merged = list(self.merged)
        found = []
        for patches in document.patches:
            sequence = _first_that_holds(merged, patches.num_rows)
            if sequence is None:
                return False
            merged[sequence] -= patches.num_rows
            found.append(sequence)
        if row is None or self.num_pictures + len(found) > self.shape.pictures:
            return False
        self.tokens[row] -= length
        self.merged = merged
        self.num_pictures += len(found)
        self.rows[row].append(document)
        for sequence, patches in zip(found, document.patches, strict=True):
            self.sequences[sequence].append(patches)
        return True


def pack(documents: Iterable[VisionDocument], shape: BatchShape) -> Iterator[VisionTensors]:
    """Batches as full as a few documents' delay allows.

    What no batch of that shape could hold is left out, and the documents that do not fill a batch at the end are too.
    """
    room, late = _Room(shape), list[VisionDocument]()
    for document in documents:
        if not _Room(shape).try_add(document):
            continue
        if not room.try_add(document):
            late.append(document)
        if len(late) < _MISSES:
            continue
        yield build(room.rows, room.sequences, shape)
        room = _Room(shape)
        late = [document for document in late if not room.try_add(document)]


def build(
    rows: Sequence[Sequence[VisionDocument]], sequences: Sequence[Sequence[Patches]], shape: BatchShape
) -> VisionTensors:
    """The tensors of these rows of documents, whose pictures lie in these sequences."""
    packed = to_batch([[each.document for each in row] for row in rows], shape.row_tokens, PADDING_ID)
    num_patches = MERGED * shape.sequence_rows
    values = np.zeros((shape.sequences, num_patches, 588), np.uint8)
    places = np.zeros((shape.sequences, num_patches, 2), np.int16)
    images = np.full((shape.sequences, num_patches), NO_IMAGE, np.int16)
    things = np.zeros(shape.sequences * shape.sequence_rows, np.uint8)
    answers = np.full((shape.pictures, len(ANSWER_SIZES)), UNKNOWN, np.int16)
    starts: dict[int, int] = {}  # by the identity of a picture's patches: its first merged row
    for sequence, held in enumerate(sequences):
        end = 0
        for patches in held:
            start, end = end, end + len(patches.values)
            values[sequence, start:end] = patches.values.reshape(-1, 588)
            places[sequence, start:end] = patches.places
            starts[id(patches)] = sequence * shape.sequence_rows + start // MERGED
    targets = np.full(len(things), packed.tokens.size, np.int32)
    number = 0
    for row, held_documents in enumerate(rows):
        ranges = []
        for each in held_documents:
            for patches, shown, told in zip(each.patches, each.things, each.answers, strict=True):
                start = starts[id(patches)]
                ranges.append(np.arange(start, start + patches.num_rows))
                things[start : start + patches.num_rows] = shown
                answers[number] = told
                images.reshape(-1)[MERGED * start : MERGED * (start + patches.num_rows)] = number
                number += 1
        if ranges:
            places_in_row = np.flatnonzero(packed.tokens[row] == IMAGE_ID)
            targets[np.concatenate(ranges)] = row * shape.row_tokens + places_in_row
    arrays = (packed.tokens, packed.classes, packed.documents, packed.positions, values, places, images)
    return VisionTensors(*map(torch.from_numpy, (*arrays, targets, things, answers)))


def _first_that_holds(free: Sequence[int], needed: int) -> int | None:
    return next((index for index, room in enumerate(free) if room >= needed), None)
