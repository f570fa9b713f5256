"""Which tokens blocks learn to draft, where blocks begin, and the losses against the one-page drafter's."""

import pytest
import torch

from support.demo_models import pack, random_documents
from support.drafters import SMALL, one_page, random_drafter, random_tables
from support.planted_fault import Fault, planted
from twinspark_demo.drafter.blocks import Blocks, PackedRows
from twinspark_demo.drafter.labels import Labels, choose_anchors
from twinspark_demo.drafter.selector import selector_loss
from twinspark_demo.training.model.chains import cross_entropy

MODULE = "twinspark_demo.drafter.labels"
FAULTS = [
    Fault("label-one-early", MODULE, "tokens = said.gather(1, (places - 1)", "tokens = said.gather(1, (places - 2)"),
    Fault("before-is-said", MODULE, "before = rows.tokens.gather", "before = said.gather"),
    Fault("on-after-another-token", MODULE, "agrees[..., :-1]), dim=-1)", "agrees[..., :-1] | True), dim=-1)"),
    Fault("on-after-the-reply", MODULE, "exists &= is_answer.gather(1, anchors)[..., None]", "exists |= True"),
    Fault("into-the-next-document", MODULE, "(exists & same)", "exists"),
    Fault("places-weigh-alike", MODULE, "STEP_WEIGHT = 0.85", "STEP_WEIGHT = 1.0"),
]


def rows_of(tokens: list[int], documents: list[int], positions: list[int]) -> PackedRows:
    return PackedRows(*(torch.tensor([values]) for values in (tokens, documents, positions)))


def check_labels() -> None:
    """Two documents: a reply from 2 to 6, and another one that starts the row 8 at once."""
    rows = rows_of([10, 11, 12, 13, 14, 15, 16, 17, 18, 19], [0] * 8 + [1] * 2, [*range(8), 0, 1])
    is_answer = torch.tensor([[False, False, True, True, True, True, True, True, True, True]])
    said = torch.tensor([[11, 12, 13, 14, 99, 16, 17, 50, 19, 60]])
    labels = Labels.of(rows, is_answer, said, torch.tensor([[2, 5, 1, 9]]), SMALL)
    assert labels.tokens[0, 0, :3].tolist() == [13, 14, 99]
    assert labels.before[0, 0, :3].tolist() == [12, 13, 14]
    expected = torch.zeros(4, 7)
    expected[0, :3] = torch.tensor([1, 0.85, 0.85**2])  # the text goes on with another token than 99
    expected[1, :2] = torch.tensor([1, 0.85])  # then the document ends
    torch.testing.assert_close(labels.weights[0], expected)
    assert labels.tokens[0, 1, :2].tolist() == [16, 17]


def test_labels_are_what_the_target_says_as_long_as_it_says_the_text() -> None:
    check_labels()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_labels_find(fault: Fault) -> None:
    with planted(fault), pytest.raises(AssertionError):
        check_labels()


def test_blocks_begin_at_first_tokens_of_replies_and_at_random_others_that_are_followed() -> None:
    is_answer = torch.zeros(1, 64, dtype=torch.bool)
    documents = (torch.arange(64) // 32)[None]
    is_answer[0, 5:15] = is_answer[0, 20:32] = is_answer[0, 40:64] = True
    followed = {*range(5, 14), *range(20, 31), *range(40, 63)}
    drawn = [choose_anchors(is_answer, documents, 12)[0].tolist() for _ in range(80)]
    for anchors in drawn:
        assert {5, 20, 40} <= set(anchors) <= followed
        assert len(set(anchors)) == 12
    assert set().union(*drawn) == followed


@torch.no_grad()
def test_losses_are_those_of_the_one_page_drafter() -> None:
    batch = pack(random_documents((40,), SMALL.vocab_size - 2, 5))
    rows = PackedRows(batch.tokens, batch.documents, batch.positions)
    taps = torch.randn(
        1, 48, len(SMALL.target_layer_ids) * SMALL.hidden_size, generator=torch.Generator().manual_seed(6)
    )
    drafter, tables = random_drafter(), random_tables()
    anchors = torch.tensor([[4, 29]])
    said = rows.tokens.roll(-1, 1)
    labels = Labels.of(rows, torch.ones(1, 48, dtype=torch.bool), said, anchors, SMALL)
    hidden = drafter(taps, rows.positions, Blocks.of(rows, anchors, SMALL), tables[0]).flatten(0, 2)
    logits = hidden @ tables[1].T
    tokens, before, weights = (part.flatten() for part in (labels.tokens, labels.before, labels.weights))
    unary, _ = cross_entropy(logits, tokens, weights)
    selector = selector_loss(hidden, logits, tokens, before, weights, drafter.weights(), SMALL)

    page, expected, total = one_page(drafter, tables), [0.0, 0.0], 0.0
    for anchor in anchors[0].tolist():
        text = rows.tokens[0, anchor : anchor + 8].tolist()
        found = page.cross_entropies(page.rows(taps[0, :anchor].double().numpy(), text[0]), text[1:], text[:-1])
        for place, losses in enumerate(found):
            expected = [sum_ + 0.85**place * loss for sum_, loss in zip(expected, losses, strict=True)]
            total += 0.85**place
    assert float(unary) == pytest.approx(expected[0] / total, rel=1e-4)
    assert float(selector) == pytest.approx(expected[1] / total, rel=1e-4)
