"""Random words: what they are made of, and that they are open."""

from random import Random

from twinspark_demo.documents.words import ENGLISH, code, distinct, english, name, open_word, pseudo_word


def test_the_english_list_has_a_thousand_words_of_small_letters() -> None:
    assert len(ENGLISH) >= 1000
    assert len(set(ENGLISH)) == len(ENGLISH)
    assert all(word.isascii() and word.isalpha() and word.islower() for word in ENGLISH)


def test_codes_have_one_case_of_letters_and_digits_and_are_no_numbers() -> None:
    rng = Random(1)
    for _ in range(2000):
        drawn = code(rng)
        assert 4 <= len(drawn) <= 8
        assert drawn.isascii() and drawn.isalnum() and not drawn.isdigit()
        assert drawn in (drawn.lower(), drawn.upper())
    assert {len(code(rng, 2, 3)) for _ in range(200)} == {2, 3}


def test_pseudo_words_are_pronounceable_and_no_english() -> None:
    rng = Random(2)
    words = {pseudo_word(rng) for _ in range(3000)}
    assert len(words) > 2500
    assert not words & set(ENGLISH)
    assert all(word.isalpha() and word.islower() and len(word) >= 3 and set(word) & set("aeiouy") for word in words)


def test_open_words_are_a_third_each() -> None:
    rng = Random(3)
    drawn = [open_word(rng) for _ in range(6000)]
    assert 0.3 < sum(word in ENGLISH for word in drawn) / 6000 < 0.37
    assert 0.2 < sum(any(mark.isdigit() for mark in word) for word in drawn) / 6000 < 0.37


def test_names_begin_with_a_capital_letter() -> None:
    rng = Random(4)
    assert all(drawn[0].isupper() and drawn[1:].islower() for drawn in (name(rng) for _ in range(1000)))


def test_distinct_words_are_distinct_and_a_seed_gives_the_same_ones() -> None:
    drawn = distinct(Random(5), english, 200)
    assert len(set(drawn)) == 200
    assert drawn == distinct(Random(5), english, 200)
    assert drawn != distinct(Random(6), english, 200)
