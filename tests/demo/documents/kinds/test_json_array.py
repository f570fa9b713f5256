"""JSON: the reply holds every value of the listing, in its order, under the names that the request states."""

import json
import re
from itertools import pairwise, permutations
from random import Random

from twinspark_demo.documents.kinds.json_array import turn


def _whole(word: str) -> str:
    return rf"(?<![^\W_]){re.escape(word)}(?![^\W_])"


def _is_listing(between: str, fields: list[str]) -> bool:
    """Whether there are only separators, names of fields, the marks of a list and "and" between two values."""
    if not between:
        return False
    for field in sorted(fields, key=len, reverse=True):
        between = re.sub(_whole(field), "", between)
    between = re.sub(r"\band\b", "", between)
    return not any(map(str.isalnum, between))


def _listed(request: str, values: list[str], fields: list[str]) -> bool:
    """Whether all the values stand in the request one behind the other."""
    request = re.sub(r"^\d+[.)] ", "", request, flags=re.MULTILINE)  # numbers of a list
    for start in re.finditer(_whole(values[0]), request):
        spans = [start.span()]
        for value in values[1:]:
            found = re.compile(_whole(value)).search(request, spans[-1][1])
            # A value that is also the name of its field stands behind that name.
            while found and not _is_listing(request[spans[-1][1] : found.start()], fields):
                found = None
            if not found:
                break
            spans.append(found.span())
        if len(spans) == len(values) and all(a[1] <= b[0] for a, b in pairwise(spans)):
            return True
    return False


def test_the_reply_holds_the_values_of_the_listing_in_their_order() -> None:
    rng = Random(1)
    clear = 0
    for _ in range(300):
        drawn = turn(rng, 1000)
        records = json.loads(drawn.answer)
        fields = list(records[0])
        values = [str(value) for record in records for value in record.values()]
        if set(fields) & set(values):
            continue
        clear += 1
        assert _listed(drawn.request, values, fields), drawn
    assert clear > 270


def test_records_have_the_same_two_or_three_fields_which_the_request_names() -> None:
    rng = Random(2)
    lengths = set()
    for _ in range(1500):
        drawn = turn(rng, 1000)
        records = json.loads(drawn.answer)
        lengths.add(len(records))
        assert len({tuple(record) for record in records}) == 1
        assert len(records[0]) in (2, 3)
        assert all(re.search(_whole(field), drawn.request) for field in records[0])
    assert lengths == set(range(1, 13))


def test_the_fields_are_named_in_the_order_of_the_reply() -> None:
    rng = Random(3)
    named = 0
    for _ in range(400):
        drawn = turn(rng, 1000)
        fields = list(json.loads(drawn.answer)[0])
        for order in permutations(fields):
            enumerated = r"""["'`]?(?:, | and |/)["'`]?""".join(map(_whole, order))
            if re.search(enumerated, drawn.request):
                named += 1
                assert list(order) == fields, drawn
    assert named > 250


def test_digits_are_numbers_and_everything_else_is_text() -> None:
    rng = Random(4)
    for _ in range(1000):
        for record in json.loads(turn(rng, 1000).answer):
            for value in record.values():
                assert isinstance(value, int) != (isinstance(value, str) and not value.isdigit())
                assert not isinstance(value, int) or 0 <= value <= 9999


def test_the_reply_is_one_line_in_the_form_of_json_dumps() -> None:
    rng = Random(5)
    for _ in range(500):
        answer = turn(rng, 1000).answer
        assert "\n" not in answer
        assert answer == json.dumps(json.loads(answer))


def test_a_small_budget_leaves_fewer_records() -> None:
    rng = Random(6)
    assert max(len(turn(rng, 250).answer) for _ in range(500)) < 500


def test_requests_have_many_frames() -> None:
    rng = Random(7)
    frames = set()
    for _ in range(2000):
        drawn = turn(rng, 1000)
        task = max(drawn.request.replace("\n\n", "\n").split("\n"), key=lambda line: "json" in line.lower())
        for field in json.loads(drawn.answer)[0]:
            task = re.sub(_whole(field), "F", task)
        frames.add(task.split(": ")[0])
    assert len(frames) > 500


def test_two_in_five_have_9_to_12_records() -> None:
    rng = Random(8)
    many = sum(len(json.loads(turn(rng, 4000).answer)) > 8 for _ in range(1000))
    assert 330 < many < 470


def test_records_are_laid_out_in_many_ways() -> None:
    rng = Random(9)
    requests = [turn(rng, 4000).request for _ in range(3000)]
    word = r"[^\W_]+"
    for layout in (
        rf"{word}: {word}, {word}",
        rf"{word} \({word}, {word}\)",
        rf"{word} - {word} - {word}",
        rf"{word} = {word}",
        rf"{word} {word} {word}",
        rf"{word}\t{word}",
        rf"{word}: {word}, {word}: {word}",
        rf"{word}={word}; {word}={word}",
        rf"{word}, {word} and {word}",
    ):
        assert (
            sum(re.search(rf"(?:^|\n){layout}(?:\n{layout})+(?:\n|$)", request) is not None for request in requests) > 2
        )
    for separator in ("; ", " / ", "\n1. ", "\n1) ", "\n- ", "\n* ", "\n\u2022 "):
        assert sum(separator in request for request in requests) > 20, separator


def test_the_fields_stand_before_or_behind_the_records() -> None:
    rng = Random(10)
    before = behind = 0
    for _ in range(600):
        drawn = turn(rng, 4000)
        fields = list(json.loads(drawn.answer)[0])
        named = re.search(r"""["'`]?(?:, | and |/)["'`]?""".join(map(_whole, fields)), drawn.request)
        value = str(next(iter(json.loads(drawn.answer)[-1].values())))
        if named:
            before += named.start() < drawn.request.rfind(value)
            behind += named.start() > drawn.request.rfind(value)
    assert before > 150
    assert behind > 80
