"""What the committed model reads in fresh pictures, one test an ability, and that it is the picture that is read."""

import pytest

from support.planted_fault import Fault, planted
from twinspark_demo.images.prompts import KINDS
from twinspark_demo.images.reader import Reader
from twinspark_demo.images.scoring import score, score_control

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

NUM_PROMPTS, NUM_EXCHANGED = 16, 15
SEED = 5
PATCHES, TOWER = "twinspark_demo.vision.patches", "twinspark_demo.vision.tower"
ORDER = "transpose(0, 3, 1, 4, 6, 2, 5)"


@pytest.mark.parametrize("kind", list(KINDS))
def test_reads(kind: str, reader: Reader) -> None:
    outcomes = score(reader, kind, NUM_PROMPTS, SEED)
    wrong = [(outcome.answer, outcome.expected) for outcome in outcomes if not outcome.is_right]
    assert len(wrong) <= 2, wrong


def test_with_another_picture_s_rows_the_answer_is_that_picture_s(reader: Reader) -> None:
    outcomes = score_control(reader, NUM_EXCHANGED, SEED)
    assert all(outcome.answer != outcome.prompt.expected for outcome in outcomes)
    assert sum(outcome.is_right for outcome in outcomes) >= NUM_EXCHANGED - 2


def test_the_control_finds_rows_that_are_not_exchanged(reader: Reader) -> None:
    fault = Fault("own-rows", "twinspark_demo.images.reader", "TowerInput.of(others)", "TowerInput.of(own)")
    with planted(fault):
        outcomes = score_control(reader, 3, SEED)
    assert [outcome.answer for outcome in outcomes] == [outcome.prompt.expected for outcome in outcomes]
    assert not any(outcome.is_right for outcome in outcomes)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault("row-by-row", PATCHES, ORDER, "transpose(0, 1, 3, 4, 6, 2, 5)"), "number"),
        (Fault("pixels-transposed", PATCHES, ORDER, "transpose(0, 3, 1, 4, 6, 5, 2)"), "number"),
        (Fault("columns-for-rows", TOWER, "(places[..., None]", "(places.flip(-1)[..., None]"), "count"),
        (Fault("blue-for-red", PATCHES, "np.asarray(content)", "np.asarray(content)[..., ::-1]"), "colour"),
    ],
    ids=lambda value: value.name if isinstance(value, Fault) else None,
)
def test_pictures_that_are_cut_wrong_are_misread(fault: Fault, kind: str, reader: Reader) -> None:
    with planted(fault):
        outcomes = score(reader, kind, NUM_PROMPTS, SEED)
    assert sum(outcome.is_right for outcome in outcomes) < NUM_PROMPTS - 2
