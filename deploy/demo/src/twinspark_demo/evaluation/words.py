"""The evaluation's own vocabulary: English words, pseudo-words, codes. Every draw takes the caller's generator."""

import random
import re
from collections.abc import Callable, Container
from importlib import resources

_PARAGRAPHS = (
    resources.files("twinspark_demo.evaluation").joinpath("words.txt").read_text(encoding="utf-8").split("\n\n")
)
NOUNS, CONTENT, FUNCTION = (tuple(paragraph.split()) for paragraph in _PARAGRAPHS)
"""Nouns; verbs with their forms, adjectives, numbers and greetings; words that hold a sentence together."""
ENGLISH = NOUNS + CONTENT + FUNCTION
_LEAST_LETTERS_OF_NAME = 3
_ONSETS = (*"bcdfghjklmnprstvwz", "br", "cl", "dr", "fl", "gr", "pl", "sk", "st", "tr", "th", "sh")
_NUCLEI = ("a", "e", "i", "o", "u", "ai", "ea", "oo", "ou")
_CODAS = ["", "", "", "l", "m", "n", "r", "s", "t", "x", "nd", "rk"]
_DIGITS = "0123456789"
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

Maker = Callable[[random.Random], str]


def english(rng: random.Random) -> str:
    """A word of any sort."""
    return rng.choice(ENGLISH)


def noun(rng: random.Random) -> str:
    """A word that names a thing and stands well as a value in the middle of a sentence."""
    return rng.choice(NOUNS)


def pseudo_word(rng: random.Random) -> str:
    """Two or three syllables that mean nothing."""
    syllables = (rng.choice(_ONSETS) + rng.choice(_NUCLEI) + rng.choice(_CODAS) for _ in range(rng.choice((2, 2, 3))))
    return "".join(syllables)


def code(rng: random.Random, low: int = 4, high: int = 8) -> str:
    """Letters of one case and digits, `low` to `high` characters; at least one letter, so that it is no number."""
    length = rng.randint(low, high)
    letters = _LETTERS if rng.random() < 0.5 else _LETTERS.upper()
    drawn = [rng.choice(letters + _DIGITS) for _ in range(length)]
    if not any(character.isalpha() for character in drawn):
        drawn[rng.randrange(length)] = rng.choice(letters)
    return "".join(drawn)


def open_word(rng: random.Random) -> str:
    """A third each: an English word, a pseudo-word, a string of 2 to 8 letters and digits."""
    return rng.choice((english, pseudo_word, lambda r: code(r, 2, 8)))(rng)


def plain_word(rng: random.Random) -> str:
    """An English word or a pseudo-word."""
    return rng.choice((english, pseudo_word))(rng)


def plain_noun(rng: random.Random) -> str:
    """A noun or a pseudo-word."""
    return rng.choice((noun, pseudo_word))(rng)


def name(rng: random.Random) -> str:
    """A capitalised noun or pseudo-word."""
    return plain_noun(rng).capitalize()


def any_name(rng: random.Random, taken: Container[str] = ()) -> str:
    """A capitalised word of any sort, of three letters or more, that is not `taken` (in small letters)."""
    while len(word := plain_word(rng)) < _LEAST_LETTERS_OF_NAME or word in taken:
        pass
    return word.capitalize()


def words_of(*texts: str) -> frozenset[str]:
    """Every word of some texts, in small letters."""
    return frozenset(re.findall(r"[a-z]+", " ".join(texts).lower()))


def distinct(rng: random.Random, maker: Maker, count: int) -> list[str]:
    """That many different draws, in the order in which they were drawn."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[maker(rng)] = None
    return list(found)


def not_within_each_other(rng: random.Random, maker: Maker, count: int) -> list[str]:
    """That many draws of which none is a part of another, whatever the case."""
    found: list[str] = []
    while len(found) < count:
        drawn = maker(rng)
        lowered = drawn.lower()
        if not any(lowered in other.lower() or other.lower() in lowered for other in found):
            found.append(drawn)
    return found
