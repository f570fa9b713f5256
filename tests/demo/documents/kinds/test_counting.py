"""Counting: the numbers between those that the request names, in the direction that their order gives."""

import re
from random import Random

from twinspark_demo.documents.kinds.counting import turn


def test_the_answer_counts_between_the_numbers_of_the_request() -> None:
    rng = Random(1)
    down = 0
    for _ in range(3000):
        drawn = turn(rng)
        found = [int(number) for number in re.findall(r"\d+", drawn.request)]
        if len(found) == 1:
            found.insert(0, 1)
        first, last = found
        if re.search(r"to \d+,? (starting|beginning)", drawn.request.lower()):
            first, last = last, first
        expected = list(range(first, last + 1)) if first <= last else list(range(first, last - 1, -1))
        assert drawn.answer == ", ".join(map(str, expected)), drawn.request
        assert 1 <= len(expected) <= 20
        assert min(expected) >= 0 and max(expected) <= 99
        down += first > last
    assert 1000 < down < 1700


def test_down_is_said_only_of_numbers_that_fall() -> None:
    rng = Random(2)
    for _ in range(1500):
        drawn = turn(rng)
        numbers = [int(number) for number in drawn.answer.split(", ")]
        if re.search(r"down|backward", drawn.request.lower().replace("write down", "")):
            assert numbers[0] >= numbers[-1], drawn
        elif re.search(r"\bup\b|forward|upwards", drawn.request.lower()):
            assert numbers[0] <= numbers[-1], drawn


def test_requests_have_many_frames() -> None:
    rng = Random(3)
    assert len({re.sub(r"\d+", "N", turn(rng).request) for _ in range(2000)}) > 200


def test_long_counts_and_counts_down_across_tens_are_frequent() -> None:
    rng = Random(4)
    answers = [[int(number) for number in turn(rng).answer.split(", ")] for _ in range(3000)]
    assert sum(len(numbers) == 20 for numbers in answers) > 700
    assert sum(numbers[0] // 10 > numbers[-1] // 10 for numbers in answers) > 1000


def test_a_bound_on_the_length_is_kept() -> None:
    rng = Random(5)
    assert {len(turn(rng, 6).answer.split(", ")) for _ in range(1000)} == set(range(1, 7))
