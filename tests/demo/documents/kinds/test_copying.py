"""Copying: the reply stands in the request, whole and once, and what surrounds it is an instruction."""

from random import Random

from twinspark_demo.documents.kinds.copying import turn

_MARKS = (('"', '"'), ("'", "'"), ("`", "`"), ("\u201c", "\u201d"), ("\u00ab", "\u00bb"))


def _around(request: str, answer: str) -> tuple[str, str]:
    """What stands before and behind the text: its last occurrence that is fenced off on both sides."""
    at = request.rfind(answer)
    while at >= 0:
        before, behind = request[:at], request[at + len(answer) :]
        if not (before[-1:].isalnum() and answer[0].isalnum()) and not (behind[:1].isalnum() and answer[-1].isalnum()):
            return before, behind
        at = request.rfind(answer, 0, at + len(answer) - 1)
    raise AssertionError((request, answer))


def test_the_reply_is_a_part_of_the_request() -> None:
    rng = Random(1)
    for _ in range(3000):
        drawn = turn(rng, 1000)
        before, behind = _around(drawn.request, drawn.answer)
        assert drawn.answer == drawn.answer.strip()
        assert len((before + behind).split()) <= 30, drawn


def test_it_is_clear_where_the_text_begins_and_ends() -> None:
    rng = Random(2)
    for _ in range(3000):
        drawn = turn(rng, 1000)
        before, behind = _around(drawn.request, drawn.answer)
        whole = not before or not behind  # runs to an end of the message
        quoted = any(before.endswith(mark[0]) and behind.startswith(mark[1]) for mark in _MARKS)
        fenced = before.endswith(("```\n", "<text>", "<text>\n", "---\n")) and behind.startswith(("\n", "</text>"))
        lines = before.endswith((":\n", ": ", ":\n\n")) and behind.startswith("\n")
        noun = " " not in drawn.answer and " the " in f" {before.lower()}"
        assert whole or quoted or fenced or lines or noun, drawn


def test_no_text_is_in_quotes_as_a_whole_or_holds_the_quotes_around_it() -> None:
    rng = Random(3)
    for _ in range(3000):
        drawn = turn(rng, 1000)
        for left, right in _MARKS:
            assert not (drawn.answer.startswith(left) and drawn.answer.endswith(right))
            if f"{left}{drawn.answer}{right}" in drawn.request:
                assert left not in drawn.answer


def test_texts_have_1_to_60_words_and_half_are_long() -> None:
    rng = Random(4)
    answers = [turn(rng, 2000).answer for _ in range(3000)]
    lengths = [sum(any(map(str.isalnum, word)) for word in answer.split()) for answer in answers]
    assert min(lengths) == 1
    assert 55 < max(lengths) <= 60
    assert sum(length > 15 for length in lengths) > 1200
    assert sum(length == 1 for length in lengths) > 150


def test_texts_are_of_every_sort() -> None:
    rng = Random(5)
    answers = [turn(rng, 1000).answer for _ in range(2000)]
    assert any("\n" in answer for answer in answers)
    assert any('"' in answer for answer in answers)
    assert any("-" in answer and " " not in answer and any(map(str.isdigit, answer)) for answer in answers)
    repeated = sum(len(set(answer.split())) < 0.7 * len(answer.split()) for answer in answers)
    assert 100 < repeated < 800


def test_a_small_budget_shortens_the_text() -> None:
    rng = Random(6)
    assert max(len(turn(rng, 300).answer) for _ in range(500)) <= 132


def test_requests_have_many_frames() -> None:
    rng = Random(7)
    drawn = [turn(rng, 1000) for _ in range(2000)]
    assert len({one.request.replace(one.answer, "T") for one in drawn}) > 800


def test_a_third_are_long_texts_of_repeated_or_near_identical_words() -> None:
    rng = Random(8)
    answers = [turn(rng, 4000).answer.split() for _ in range(1000)]
    assert sum(len(answer) >= 40 for answer in answers) > 350
    assert sum(len(answer) >= 40 and len(set(answer)) < 0.85 * len(answer) for answer in answers) > 120
