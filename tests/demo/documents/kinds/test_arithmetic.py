"""Arithmetic: the answer and every step of the thinking are true, checked by reading the request and by eval."""

import re
from collections import Counter
from random import Random

import pytest

from twinspark_demo.documents.indirect import indirect
from twinspark_demo.documents.kinds import arithmetic
from twinspark_demo.documents.kinds.arithmetic import make, turn

_PLUS = r"\+|plus|added to|add|sum|total"
_MINUS = r"-|\u2212|minus|take|\bless\b|subtract|difference"
_TIMES = r"\*|\u00d7|times|multipl|product|(?<=\d)\s?[xX]\s?(?=\d)"


_JOINTS = r"\.\.\. |[.!;:?] |\.\n|, (?:so|and|but|therefore) "


def _asked(request: str) -> tuple[int, str, int]:
    # A remark before the request may hold any word: what counts starts with the part of the first digit.
    digit = re.search(r"\d", request)
    assert digit
    starts = [joint.end() for joint in re.finditer(_JOINTS, request) if joint.end() <= digit.start()]
    request = request[max(starts, default=0) :]
    first, second = map(int, re.findall(r"\d+", request))
    found = [sign for sign, words in (("+", _PLUS), ("-", _MINUS), ("*", _TIMES)) if re.search(words, request.lower())]
    assert len(found) == 1, request
    if re.search(r"(subtract|take) \d+ (away )?from", request.lower()):
        first, second = second, first
    return first, found[0], second


@pytest.mark.parametrize("thinks", [True, False])
def test_the_answer_is_right(thinks: bool) -> None:
    rng = Random(1)
    for _ in range(3000):
        drawn = turn(rng, thinks)
        first, sign, second = _asked(drawn.request)
        assert int(drawn.answer) == eval(f"{first}{sign}{second}"), drawn.request
        assert bool(drawn.reasoning) == thinks


def test_every_step_is_true() -> None:
    rng = Random(2)
    for _ in range(3000):
        drawn = turn(rng, True)
        first, sign, _ = _asked(drawn.request)
        for step in re.split(r"[,;:] ", drawn.reasoning):
            if "=" in step:
                left, right = step.split("=")
                assert eval(left) == int(right), drawn
            else:
                assert (eval(step) is True) if "<" in step or ">" in step else re.fullmatch(r"\d+[-+]\d+", step), drawn
        if sign == "-":
            assert drawn.reasoning.startswith(str(first))


@pytest.mark.parametrize("sign", ["+", "-"])
def test_the_digits_of_the_answer_are_those_of_the_columns(sign: str) -> None:
    rng = Random(3)
    for _ in range(2000):
        drawn = turn(rng, True)
        if _asked(drawn.request)[1] == sign:
            columns = [step.split("=")[1] for step in re.findall(r"[\d+\-]+=\d+(?=,|$)", drawn.reasoning)]
            columns = columns[1:] if drawn.reasoning.split(",")[0] in (f"{a}={a}" for a in columns[:1]) else columns
            digits = columns[-1] + "".join(column[-1] for column in reversed(columns[:-1]))
            assert int(digits) == abs(int(drawn.answer)), drawn


def test_without_thinking_no_product_has_more_than_one_digit_a_side() -> None:
    rng = Random(4)
    for _ in range(2000):
        first, sign, second = _asked(turn(rng, False).request)
        assert max(first, second) < (10 if sign == "*" else 100)


def test_the_operators_and_sizes_are_spread() -> None:
    rng = Random(5)
    asked = [_asked(turn(rng, True).request) for _ in range(3000)]
    signs = Counter(sign for _, sign, _ in asked)
    assert min(signs.values()) > 850
    assert 0.1 < sum(min(a, b) < 10 for a, _, b in asked) / 3000 < 0.2
    assert any(sign == "-" and a < b for a, sign, b in asked)


def test_requests_have_many_frames() -> None:
    rng = Random(6)
    frames = {re.sub(r"\d+", "N", str(make(rng, 1000).messages[-2]["content"])) for _ in range(2000)}
    assert len(frames) > 200


def test_one_request_in_five_passes_on_the_question_of_somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = []

    def noted(rng: Random, asked: str, clause: str) -> str:
        passed.append(indirect(rng, asked, clause))
        return passed[-1]

    monkeypatch.setattr(arithmetic, "indirect", noted)
    rng = Random(7)
    requests = [turn(rng, True).request for _ in range(2000)]
    assert 330 < len(passed) < 470
    assert set(passed) <= set(requests)
    assert sum(re.search(r"asks|asked|says|wants|need|know", request) is not None for request in passed) > 140
