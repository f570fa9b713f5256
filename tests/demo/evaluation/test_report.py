"""When an evaluation is good enough, and what its table says."""

import pytest

from twinspark_demo.evaluation.answer import Answer
from twinspark_demo.evaluation.prompt import Prompt, ask
from twinspark_demo.evaluation.report import format_failures, format_table, is_good_enough
from twinspark_demo.evaluation.scoring import KindScore, Outcome

FAILED = Answer(error="answered 503: gone", is_failed_request=True)


def score(num_greedy_right: int, num_sampled_right: int, wrong: Answer) -> KindScore:
    """Of 40 prompts in each mode; every tenth is held out."""
    outcomes = []
    for mode, num_right in (("greedy", num_greedy_right), ("sampled", num_sampled_right)):
        for place in range(40):
            right = place < num_right
            prompt = Prompt("facts", ask(f"Question {place}"), "yes", held_out=place % 10 == 9)
            answer = Answer(text="yes", output_tokens=3) if right else wrong
            outcomes.append(Outcome(prompt, mode, answer, right))
    return KindScore("facts", outcomes, 1.5)


@pytest.mark.parametrize(
    ("greedy", "sampled", "wrong", "good"),
    [
        (38, 38, Answer(text="no"), True),
        (37, 40, Answer(text="no"), False),
        (40, 37, Answer(text="no"), False),
        (39, 40, FAILED, False),
    ],
)
def test_95_percent_of_each_mode_are_enough_unless_a_request_failed(
    greedy: int, sampled: int, wrong: Answer, good: bool
) -> None:
    enough = score(40, 40, wrong)
    assert is_good_enough([enough, score(greedy, sampled, wrong)]) is good


def test_the_table_has_shares_of_each_mode_and_of_held_out_wordings() -> None:
    table = format_table([score(40, 38, Answer(text="no", output_tokens=3))])
    assert table.splitlines()[1].split() == ["facts", "40", "100.0", "95.0", "87.5", "3.0", "1.5"]


def test_wrong_answers_are_shown_failed_requests_first_and_a_few_of_many() -> None:
    assert format_failures([score(40, 40, FAILED)]) == ""
    shown = format_failures([score(20, 39, Answer(text="no"))]).splitlines()
    assert len(shown) == 11
    assert shown[0] == "facts, greedy: said 'no'; asked 'Question 20'"
    assert shown[-1] == "facts: 11 more"
    mixed = KindScore("facts", [*score(39, 40, Answer(text="no")).outcomes, *score(40, 39, FAILED).outcomes], 1.0)
    assert format_failures([mixed]).startswith("facts, sampled: answered 503: gone; asked")
