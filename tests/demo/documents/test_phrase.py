"""Phrases: alternatives, nesting, slots, and what does not parse."""

from random import Random

import pytest

from twinspark_demo.documents.phrase import Phrase


def _all(phrase: Phrase, **slots: str) -> set[str]:
    rng = Random(1)
    return {phrase.write(rng, **slots) for _ in range(500)}


def test_every_alternative_is_drawn() -> None:
    assert _all(Phrase("{one|two|} end", "other")) == {"one end", "two end", " end", "other"}


def test_alternatives_nest() -> None:
    assert _all(Phrase("a{b{c|d}|e{|f}}g")) == {"abcg", "abdg", "aeg", "aefg"}


def test_texts_are_equally_likely_whatever_they_hold() -> None:
    rng = Random(2)
    phrase = Phrase("{a|b|c|d|e}", "z")
    assert 450 < sum(phrase.write(rng) == "z" for _ in range(1000)) < 550


def test_values_of_slots_are_put_in_as_they_are() -> None:
    assert _all(Phrase("<x>: {<y>|-}"), x="{a|b}", y="<x>") == {"{a|b}: <x>", "{a|b}: -"}


def test_a_slot_without_a_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        Phrase("<x>").write(Random(1))


@pytest.mark.parametrize("text", ["{a|b", "a}b", "a|b", "<x", "{a{b|c}"])
def test_text_that_does_not_parse_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"brace|substring"):
        Phrase(text)
