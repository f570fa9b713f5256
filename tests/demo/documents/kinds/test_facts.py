"""Facts: every answer stands in a table of `knowledge` beside something that the request names."""

import re
from random import Random

import pytest

from twinspark_demo.documents.indirect import indirect
from twinspark_demo.documents.kinds import facts
from twinspark_demo.documents.kinds.facts import chain, turn
from twinspark_demo.knowledge import AMOUNTS, CAPITALS, COLOURS, OPPOSITES


def _named(words: str, request: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words.lower())}(?!\w)", request.lower()) is not None


def _right(request: str) -> set[str]:
    """Every answer that the tables have to what the request names."""
    small = request.lower()
    if "capital" in small or "seat of government" in small:
        forward = {city for country, city in CAPITALS.items() if _named(country, request)}
        return forward or {country for country, city in CAPITALS.items() if _named(city, request)}
    if re.search(r"colou?r", small):
        return {colour for thing, colour in COLOURS.items() if _named(thing, request)}
    amounts = {str(n) for (things, whole), n in AMOUNTS.items() if _named(things, request) and _named(whole, request)}
    if amounts:
        return amounts
    pairs = [*OPPOSITES.items(), *((second, first) for first, second in OPPOSITES.items())]
    return {answer for word, answer in pairs if _named(word, request)}


def test_the_answer_is_in_the_table() -> None:
    rng = Random(1)
    for _ in range(4000):
        drawn = turn(rng)
        assert drawn.answer in _right(drawn.request), drawn


def test_every_row_of_every_table_is_asked_for() -> None:
    rng = Random(2)
    answers = {turn(rng).answer for _ in range(8000)}
    for table in (CAPITALS, OPPOSITES, COLOURS):
        assert answers >= set(table.values())
    assert answers >= {str(amount) for amount in AMOUNTS.values()}


@pytest.mark.parametrize("count", [2, 4])
def test_a_chain_stays_in_its_table(count: int) -> None:
    rng = Random(3)
    backward = {second: first for first, second in OPPOSITES.items()}
    for _ in range(500):
        first, *others = chain(rng, count)
        assert len(others) == count - 1
        assert first.answer in _right(first.request)
        tables = [
            table
            for table in (CAPITALS, {**backward, **OPPOSITES}, COLOURS)
            if any(_named(key, first.request) and answer == first.answer for key, answer in table.items())
        ]
        for other in others:
            assert any(
                _named(key, other.request) and answer == other.answer
                for table in tables
                for key, answer in table.items()
            ), other


def test_requests_have_many_frames() -> None:
    rng = Random(4)
    keys = sorted({*CAPITALS, *OPPOSITES, *OPPOSITES.values(), *COLOURS, *CAPITALS.values()}, key=len, reverse=True)
    keyed = re.compile("|".join(map(re.escape, keys)), re.IGNORECASE)
    assert len({keyed.sub("K", turn(rng).request) for _ in range(2000)}) > 300


def test_one_request_in_five_passes_on_the_question_of_somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = []

    def noted(rng: Random, asked: str, clause: str) -> str:
        passed.append(indirect(rng, asked, clause))
        return passed[-1]

    monkeypatch.setattr(facts, "indirect", noted)
    rng = Random(5)
    requests = [turn(rng).request for _ in range(2000)]
    assert 330 < len(passed) < 470
    assert set(passed) <= set(requests)
    assert sum(re.search(r"asks|asked|says|wants|need|know", request) is not None for request in passed) > 140
