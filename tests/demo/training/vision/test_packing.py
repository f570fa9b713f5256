"""Batches: every picture whole and once, its rows at its own token's place, and all of one size."""

from collections.abc import Callable

import numpy as np
import torch

from support.vision_models import SMALL_BATCH
from twinspark_demo.pictures.marks import UNKNOWN
from twinspark_demo.training.vision.packing import IMAGE_ID, MERGED, BatchShape, VisionDocument, VisionTensors, pack

DrawDocuments = Callable[[int, int], list[VisionDocument]]
WHOLE = BatchShape(rows=3, row_tokens=1024, sequences=9, sequence_rows=256, pictures=30)


def pictures_of(batch: VisionTensors) -> list[bytes]:
    """The pixels of each picture, in the order of the tokens that its rows stand for."""
    flat = batch.values.flatten(0, 1).unflatten(0, (-1, MERGED))
    owners = batch.images[:, ::MERGED].flatten()
    found = []
    for number in range(int(owners.max()) + 1):
        rows = (owners == number).nonzero().flatten()
        order = batch.targets[rows].argsort()
        assert torch.equal(order, torch.arange(len(rows)))
        assert torch.equal(batch.targets[rows], batch.targets[rows[0]] + torch.arange(len(rows)))
        found.append(flat[rows].numpy().tobytes())
    return found


def test_every_document_s_pictures_are_there_beside_its_own_tokens(draw_documents: DrawDocuments) -> None:
    documents = draw_documents(5, 150)
    by_ids = {each.document.ids.tobytes(): each for each in documents}
    seen = 0
    for batch in pack(documents, WHOLE):
        pictures = iter(pictures_of(batch))
        for row in range(WHOLE.rows):
            numbers = batch.documents[row]
            for number in range(int(numbers.max()) + 1):
                place = (numbers == number).nonzero().flatten()
                ids = batch.tokens[row, place].numpy()
                document = next(each for key, each in by_ids.items() if ids.tobytes().startswith(key))
                assert (document.document.ids == IMAGE_ID).sum() == sum(cut.num_rows for cut in document.patches)
                for cut in document.patches:
                    assert next(pictures) == cut.values.tobytes()
                seen += 1
        assert next(pictures, None) is None
        assert torch.equal((batch.targets < batch.tokens.numel()).sum(), (batch.tokens == IMAGE_ID).sum())
    assert seen > 100


def test_batches_of_all_kinds_are_nearly_full(draw_documents: DrawDocuments) -> None:
    batches = list(pack(draw_documents(6, 300), WHOLE))
    assert len(batches) > 3
    shares = [float((batch.classes > 0).float().mean()) for batch in batches]
    assert np.mean(shares) > 0.75


def test_what_fits_no_batch_is_left_out_and_blocks_nothing(draw_documents: DrawDocuments) -> None:
    documents = draw_documents(7, 500)
    lengths = [len(each.document.ids) for each in documents]
    assert max(lengths[:20]) > SMALL_BATCH.row_tokens
    first, second = list(pack(documents, SMALL_BATCH))[:2]
    assert [each.shape for each in first] == [each.shape for each in second]


def test_answers_are_known_for_each_picture_that_is_there(draw_documents: DrawDocuments) -> None:
    batch = next(pack(draw_documents(8, 100), WHOLE))
    there = int(batch.images.max()) + 1
    assert (batch.answers[:there] != UNKNOWN).any(1).all()
    assert (batch.answers[there:] == UNKNOWN).all()
    assert (batch.things.reshape(WHOLE.sequences, -1)[batch.images[:, ::MERGED] < 0] == 0).all()
