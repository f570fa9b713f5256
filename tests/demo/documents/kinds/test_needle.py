"""Needles: an asked code stands in one sentence, beside its name; the other codes stand beside other names."""

import re
from pathlib import Path
from random import Random

import pytest

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents import codes_asked, codes_told
from twinspark_demo.documents.codes_told import Teller
from twinspark_demo.documents.kinds.needle import _codes, make
from twinspark_demo.documents.words import NOUNS

_FIXED = set(re.findall(r"[a-z]+", Path(codes_told.__file__).read_text()))  # written in the frames themselves
_PLAINLY = re.compile(
    r"(?i)(what|which|tell me|give me|code)( is| code| the| of| for| to| belongs| does| have| that)* "
    r"Nnn('s code| have)?[?.]?"
)
_WORDS_OF_QUESTIONS = re.compile(r"[A-Z][a-z]{2,}(?![a-z])")


def _asked(conversation: Conversation) -> list[tuple[str, str]]:
    """(question, answer) of every turn but the one that only hands the text over."""
    messages = [message for message in conversation.messages if message["role"] != "system"]
    pairs = [(ask["content"], reply["content"]) for ask, reply in zip(messages[::2], messages[1::2], strict=True)]
    return [pair for pair in pairs if pair[1] != "Noted."]


def _text(conversation: Conversation) -> str:
    return str(next(message["content"] for message in conversation.messages if message["role"] == "user"))


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?]) |\n", text)


@pytest.mark.parametrize("budget", [400, 1000, 3000])
def test_the_answer_stands_in_one_sentence_with_a_name_of_the_question(budget: int) -> None:
    rng = Random(budget)
    for _ in range(60):
        drawn = make(rng, budget)
        sentences = _sentences(_text(drawn))
        for asked, answer in _asked(drawn):
            beside = [one for one in sentences if re.search(rf"(?<!\w){answer}(?!\w)", one)]
            assert len(beside) == 1, (answer, beside)
            question = asked if asked != _text(drawn) else "\n".join(sentences[:6] + sentences[-6:])
            shared = [
                known
                for known in set(_WORDS_OF_QUESTIONS.findall(question))
                if re.search(rf"\b{known}\b", beside[0].replace(answer, ""))
            ]
            assert shared, (question, beside)


def test_answers_are_codes_of_which_none_holds_another() -> None:
    rng = Random(2)
    for _ in range(100):
        answers = [answer.lower() for _, answer in _asked(make(rng, 1000))]
        assert len(set(answers)) == len(answers)
        assert all(re.fullmatch(r"[a-z0-9]{4,8}", answer) for answer in answers)
        assert not any(one in other for one in answers for other in answers if one != other)


def test_no_name_and_no_code_holds_another() -> None:
    rng = Random(7)
    for _ in range(60):
        codes = _codes(rng, 40)
        for words in (list(codes), list(codes.values())):
            small = [word.lower() for word in words]
            assert len(set(small)) == 40
            assert not any(one in other for one in small for other in small if one != other)


def test_most_documents_have_33_to_40_codes_and_several_questions() -> None:
    rng = Random(3)
    many = asked = 0
    for _ in range(200):
        drawn = make(rng, 3000)
        codes = re.findall(r"\b(?=\w*\d)(?=\w*[A-Za-z])\w{4,8}\b", _text(drawn))
        many += len(codes) >= 20  # a quarter of the codes has no digit
        asked += len(_asked(drawn)) > 3
    assert many > 120
    assert asked > 150


def test_filler_is_as_long_as_the_budget_allows_and_no_longer() -> None:
    rng = Random(4)
    lengths = [len(_text(make(rng, 9000))) / 2.2 for _ in range(150)]
    assert 5000 < max(lengths) < 9000
    assert sum(length < 2000 for length in lengths) > 50
    assert sum(length > 4000 for length in lengths) > 5


def test_questions_come_behind_the_text_before_it_and_in_a_turn_of_their_own() -> None:
    rng = Random(5)
    drawn = [make(rng, 1000) for _ in range(300)]
    own = sum(any(message["content"] == "Noted." for message in one.messages) for one in drawn)
    first = sum("code" in _text(one).split("\n\n")[0] and _text(one).split("\n\n")[0].count(" ") < 16 for one in drawn)
    assert 45 < own < 110
    assert first > 15
    assert not any(one.learns_prompt for one in drawn)


def test_questions_have_many_frames() -> None:
    rng = Random(6)
    frames = {re.sub(r"\b[A-Z][a-z]+\b", "N", asked) for _ in range(300) for asked, _ in _asked(make(rng, 700))[1:]}
    assert len(frames) > 300


def test_codes_are_told_in_many_frames_of_which_two_fifths_are_plain() -> None:
    rng = Random(8)
    told = [Teller(rng, {"Nnn"}).sentence("Nnn", "c0c0") for _ in range(3000)]
    assert len(set(told)) > 1500
    plain = {Teller(rng, {"Nnn"}).plain("Nnn", "c0c0") for _ in range(2000)}
    assert 0.35 < sum(text in plain for text in told) / len(told) < 0.46
    assert all(text.count("Nnn") == 1 and len(re.findall(r"\bc0c0\b", text)) == 1 for text in told)
    assert not any(re.search(r"\d|<|[{}]", text.replace("c0c0", "").replace("->", "")) for text in told)
    places = [text.index("c0c0") / len(text) for text in told if text not in plain]
    assert min(sum(place < 0.2 for place in places), sum(0.4 < place < 0.75 for place in places)) > 100


def test_no_word_around_a_code_is_one_of_the_names() -> None:
    rng = Random(9)
    names = {word.capitalize() for word in NOUNS[::2]}
    for _ in range(1500):
        words = Teller(rng, names).sentence("Nnn", "c0c0").replace("Mrs", "").split()
        assert (
            not {word.strip(",.:!'") for word in words if word[0].islower()} & {one.lower() for one in names} - _FIXED
        )


def test_half_of_the_questions_are_plain_and_every_one_has_the_name() -> None:
    rng = Random(10)
    drawn = [codes_asked.asked(rng, "Nnn", False) for _ in range(3000)]
    assert all("Nnn" in text for text in drawn)
    assert 0.38 < sum(bool(_PLAINLY.fullmatch(text)) for text in drawn) / len(drawn) < 0.6
