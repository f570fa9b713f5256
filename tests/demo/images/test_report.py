"""When reading pictures is good enough, and what table and failures say."""

import pytest

from twinspark_demo.images.prompts import ImagePrompt
from twinspark_demo.images.report import format_failures, format_table, is_good_enough
from twinspark_demo.images.scoring import Outcome


def outcomes(num_right: int, of: int = 50) -> list[Outcome]:
    """The last ones are wrong; questions stand before and behind in turn, every tenth is held out."""
    return [
        Outcome(
            ImagePrompt("number", f"Question {place}", (), "123", place % 2 == 0, place % 10 == 9),
            "123",
            "123" if place < num_right else "124",
        )
        for place in range(of)
    ]


@pytest.mark.parametrize(("right", "good"), [(45, True), (44, False), (0, False)])
def test_nine_in_ten_of_every_kind_are_enough(right: int, good: bool) -> None:
    assert is_good_enough({"number": outcomes(50), "control": outcomes(right)}) is good


def test_a_kind_of_which_nothing_was_asked_is_not_good_enough() -> None:
    assert not is_good_enough({"number": []})


def test_the_table_has_a_line_a_kind_with_shares_of_its_parts() -> None:
    table = format_table({"number": outcomes(47), "count": outcomes(1, of=2)}).splitlines()
    assert table[1].split() == ["number", "50", "94", "96", "92", "80"]
    assert table[2].split() == ["count", "2", "50", "100", "0", "-"]


def test_failures_tell_answer_and_question_of_a_few() -> None:
    assert format_failures({"number": outcomes(50)}) == ""
    lines = format_failures({"number": outcomes(38)}).splitlines()
    assert lines[0] == "number: said '124', right is '123'; asked 'Question 38'"
    assert len(lines) == 11 and lines[-1] == "number: 2 more"
