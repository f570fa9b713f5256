"""What is asked about pictures: both places of the question, both orders of two pictures, fresh draws by seed."""

import pytest

from twinspark_demo.images.prompts import BOTH, KINDS, WORDINGS, ImagePrompt, draw_prompts

COUNT = 50


def prompts(kind: str, seed: int = 1, count: int = COUNT) -> list[ImagePrompt]:
    return list(draw_prompts(kind, count, seed))


@pytest.mark.parametrize("kind", list(WORDINGS))
def test_a_picture_is_asked_about_in_ten_ways_two_of_them_held_out(kind: str) -> None:
    found = WORDINGS[kind]
    assert len({wording.text for wording in found}) == 10
    assert sum(wording.held_out for wording in found) == 2
    asked = prompts(kind)
    assert {prompt.text for prompt in asked} == {wording.text for wording in found}
    for wording in found:
        assert {prompt.is_before for prompt in asked if prompt.text == wording.text} == {True, False}


def test_two_pictures_are_asked_about_in_held_out_words_too() -> None:
    assert all(any(wording.held_out for wording in found) for found in BOTH.values())


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_same_seed_asks_the_same_and_another_seed_something_else(kind: str) -> None:
    assert prompts(kind, count=4) == prompts(kind, count=4) != prompts(kind, seed=2, count=4)


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_question_stands_before_the_pictures_and_behind_them_as_often(kind: str) -> None:
    before = 0
    for prompt in prompts(kind, count=10):
        parts = [part["type"] for part in prompt.messages[0]["content"]]
        images = ["image"] * len(prompt.drawings)
        assert parts == (["text", *images] if prompt.is_before else [*images, "text"])
        before += prompt.is_before
    assert before == 5


def test_of_both_pictures_the_answers_stand_in_their_order() -> None:
    asked = prompts("two_both")
    for prompt in asked:
        assert prompt.expected == ", ".join(drawing.answer for drawing in prompt.drawings)
    assert {prompt.drawings[0].answer.isdigit() for prompt in asked} == {True, False}


def test_the_picture_that_answers_is_the_first_or_the_second() -> None:
    places = []
    for prompt in prompts("two_either"):
        answering = [place for place, drawing in enumerate(prompt.drawings) if drawing.answer == prompt.expected]
        assert len(answering) == 1
        places += answering
    assert COUNT / 4 < sum(places) < 3 * COUNT / 4
