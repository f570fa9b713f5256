"""Chat: fixed answers to small talk, one sentence for everything else, never two answers to one request."""

import re
from random import Random

from twinspark_demo.documents.kinds.chat import CANNOT, cannot, turn
from twinspark_demo.knowledge import CAPITALS, COLOURS, OPPOSITES


def _plain(request: str) -> str:
    return re.sub(r"\W+", " ", request.lower()).strip()


def test_a_request_has_one_answer_whatever_its_punctuation() -> None:
    rng = Random(1)
    answers: dict[str, str] = {}
    for _ in range(20_000):
        drawn = turn(rng)
        assert answers.setdefault(_plain(drawn.request), drawn.answer) == drawn.answer, drawn
    assert len(set(answers.values())) >= 25


def test_each_answer_has_several_wordings_and_the_refusal_a_third() -> None:
    rng = Random(2)
    drawn = [turn(rng) for _ in range(6000)]
    wordings: dict[str, set[str]] = {}
    for one in drawn:
        wordings.setdefault(one.answer, set()).add(one.request)
    assert min(map(len, wordings.values())) >= 5
    assert 0.3 < sum(one.answer == CANNOT for one in drawn) / 6000 < 0.4


def test_nothing_that_is_known_is_refused() -> None:
    rng = Random(3)
    for _ in range(4000):
        request = cannot(rng).request
        words = set(re.findall(r"\w+", request.lower()))
        turned = re.search(r"opposite of (\w+)", request)
        if "capital" in words:
            assert not any(country in request for country in CAPITALS)
        elif turned:
            assert turned[1] not in {*OPPOSITES, *OPPOSITES.values()}, request
        elif words & {"colour", "color"}:
            assert not words & {thing.split()[-1] for thing in COLOURS} - {"s"}, request
