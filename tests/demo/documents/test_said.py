"""Texts from elsewhere that are copied: they are whole, and of every kind."""

import json
from random import Random

from twinspark_demo.documents.said import object_text, prose, sentences, turn_text
from twinspark_demo.documents.words import FURTHER, OTHERS
from twinspark_demo.knowledge import CAPITALS


def test_sentences_begin_and_end_as_sentences_do() -> None:
    rng = Random(1)
    drawn = [sentences(rng) for _ in range(1000)]
    capital = sum(text[0].isupper() or text[0].isdigit() for text in drawn)
    assert capital > 900  # small talk may begin with a small letter
    assert sum(text[-1] in ".!?" for text in drawn) > 900
    assert {1, 2, 3, 4} <= {text.count(". ") + 1 for text in drawn}


def test_prose_is_long_but_mostly_short_enough_to_be_copied() -> None:
    rng = Random(4)
    lengths = [len(prose(rng).split()) for _ in range(1000)]
    assert sum(40 <= length <= 60 for length in lengths) > 500


def test_turns_are_requests_of_other_kinds_and_now_and_then_replies() -> None:
    rng = Random(2)
    drawn = [turn_text(rng) for _ in range(6000)]
    assert len(set(drawn)) > 4000
    for known in ("capital of", "count", "code of", "Rename", "JSON", "weather", "Hello", '[{"'):
        assert any(known in text for text in drawn), known
    assert set(drawn) & set(CAPITALS.values())


def test_objects_are_json_also_with_objects_and_lists_in_them() -> None:
    rng = Random(3)
    drawn = [json.loads(object_text(rng)) for _ in range(500)]
    assert all(isinstance(value, dict) and value for value in drawn)
    own = [value for value in drawn if not {"parameters", "function"} & value.keys()]  # the others are tools
    assert 200 < len(own) < len(drawn)
    inner = [type(value) for outer in own for value in outer.values()]
    assert {dict, list, int, str, bool, type(None)} <= set(inner)


def test_function_words_and_words_of_requests_are_two_lists() -> None:
    assert not set(OTHERS) & set(FURTHER)
    assert {"what", "and", "the"} <= set(OTHERS)
    assert {"hello", "says", "servers"} <= set(FURTHER)
