"""Packed documents give what each gives alone: logits, drafts, losses; nothing crosses a document's start."""

import pytest
import torch

from support.demo_models import pack, random_documents, random_model, small_config, stack
from twinspark_demo.training.model import ForwardOptions

CONFIG = small_config()
LENGTHS = (37, 1, 70, 16, 23)
DEPTH = 3
ATOL = 1e-4  # of logits: fp32 products of other shapes, with sums in another order


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_a_packed_document_has_the_logits_and_drafts_that_it_has_alone(sparse: bool) -> None:
    model = random_model(CONFIG)
    options = ForwardOptions(sparse=sparse, mtp_depth=DEPTH)
    documents = random_documents(LENGTHS, CONFIG.vocab_size)
    start = 0
    with torch.no_grad():
        packed = model.predictions(pack(documents), options)
        for ids in documents:
            alone = model.predictions(pack([ids]), options)
            rows = slice(start, start + len(ids))
            assert torch.allclose(packed.logits[0, rows], alone.logits[0, : len(ids)], atol=ATOL)
            for depth in range(1, DEPTH + 1):
                # A row whose next token is in the document, and whose chain began in it.
                mine, theirs = alone.mtp_logits[depth - 1][0], packed.mtp_logits[depth - 1][0]
                assert torch.allclose(theirs[rows][depth - 1 : -1], mine[: len(ids)][depth - 1 : -1], atol=ATOL)
            start += -(-len(ids) // 16) * 16


def test_losses_of_packed_rows_are_the_weighted_mean_of_the_documents_losses() -> None:
    model = random_model(CONFIG)
    options = ForwardOptions(mtp_depth=DEPTH)
    documents = random_documents((37, 70, 16, 23), CONFIG.vocab_size)
    with torch.no_grad():
        packed = model(stack([pack(documents[:2], 128), pack(documents[2:], 128)]), options)
        alone = [model(pack([ids]), options) for ids in documents]
    # A document of n tokens has n - 1 targets of the main head and n - 1 - d of depth d.
    for depth, loss in enumerate((packed.main, *packed.mtp)):
        counts = [len(ids) - 1 - depth for ids in documents]
        sums = [count * float((one.main, *one.mtp)[depth]) for count, one in zip(counts, alone, strict=True)]
        assert float(loss) == pytest.approx(sum(sums) / sum(counts), rel=1e-5)


def test_right_predictions_are_marked_at_their_target() -> None:
    model = random_model(CONFIG)
    batch = pack(random_documents((37, 23), CONFIG.vocab_size))
    options = ForwardOptions()
    with torch.no_grad():
        seen = model.predictions(batch, options)
        # Some targets are what the model says; the first token of a document stays unpredicted.
        batch.tokens[0, 10], batch.tokens[0, 48] = seen.logits[0, 9].argmax(), seen.logits[0, 47].argmax()
        losses, seen = model(batch, options), model.predictions(batch, options)
    for ahead, correct, logits in ((1, losses.correct, seen.logits), (2, losses.mtp_correct, seen.mtp_logits[0])):
        for target in range(batch.tokens.shape[1]):
            expected = batch.positions[0, target] >= ahead and bool(
                logits[0, target - ahead].argmax() == batch.tokens[0, target]
            )
            assert bool(correct[0, target]) == expected
    assert losses.correct[0, 10]
    assert not losses.correct[0, 48]
