"""Random words of every sort that documents are made of: English, pseudo-words, codes, names."""

from collections.abc import Callable
from importlib.resources import files
from random import Random

# Five paragraphs: nouns, verbs, adjectives, function words, and what else requests are made of, inflected forms too. A
# word may stand in several of the first four. ENGLISH holds it once, and none of the fifth: as an argument of a call
# many of these would be taken for a part of the request.
_PARAGRAPHS = files("twinspark_demo.documents").joinpath("english.txt").read_text(encoding="utf-8").split("\n\n")
NOUNS, VERBS, ADJECTIVES, OTHERS, FURTHER = (tuple(paragraph.split()) for paragraph in _PARAGRAPHS)
ENGLISH: tuple[str, ...] = tuple(dict.fromkeys(NOUNS + VERBS + ADJECTIVES + OTHERS))
_REQUESTS = OTHERS + FURTHER

_ONSETS = (
    *"bcdfghjklmnprstvwyz",
    *("", "", "", "", "br", "ch", "cl", "dr", "fl", "gr", "kr", "pl", "qu", "sh", "sk", "sl", "st", "th", "tr", "x"),
)
_VOWELS = (*"aeiou", *"aeiou", *"aeiou", "ai", "ea", "ee", "oo", "ou", "ia", "y")
_CODAS = (*"bdgklmnnprrstxz", "ck", "ld", "nd", "ng", "rn", "rt", "sh", "st")
_CODA_WITHIN, _CODA_AT_END = 0.25, 0.6
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"
_ENDINGS, _ENDING_SHARE, _CAPITAL_SHARE = ("s", "s", "ing", "ed", "er", "ly"), 0.1, 0.25
_SHARES_OF_DIGITS = (0.0, 0.2, 0.4, 0.4, 0.5)


def english(rng: Random) -> str:
    """A common English word in lower case."""
    return ENGLISH[int(rng.random() * len(ENGLISH))]


def any_english(rng: Random) -> str:
    """A word of `ENGLISH` or, every other time, of requests; now and then with an ending or a capital first letter."""
    words = _REQUESTS if rng.random() < 0.5 else ENGLISH
    word = words[int(rng.random() * len(words))]
    if rng.random() < _ENDING_SHARE:
        word += _ENDINGS[int(rng.random() * len(_ENDINGS))]
    return word.capitalize() if rng.random() < _CAPITAL_SHARE else word


def pseudo_word(rng: Random) -> str:
    """A pronounceable word of 3 to about 12 letters in lower case that is no English word of the list."""
    while True:
        syllables = (1, 2, 2, 2, 3)[int(rng.random() * 5)]
        parts = []
        for left in range(syllables, 0, -1):
            parts.append(_ONSETS[int(rng.random() * len(_ONSETS))])
            parts.append(_VOWELS[int(rng.random() * len(_VOWELS))])
            if rng.random() < (_CODA_AT_END if left == 1 else _CODA_WITHIN):
                parts.append(_CODAS[int(rng.random() * len(_CODAS))])
        word = "".join(parts)
        if len(word) > 2 and word not in _ENGLISH_SET:
            return word


def code(rng: Random, low: int = 4, high: int = 8) -> str:
    """`low` to `high` letters (all lower or all upper case) and digits; at least one letter, so no number."""
    length = low + int(rng.random() * (high - low + 1))
    letters = _LETTERS if rng.random() < 0.5 else _LETTERS.upper()
    share = _SHARES_OF_DIGITS[int(rng.random() * len(_SHARES_OF_DIGITS))]
    marks = [
        _DIGITS[int(rng.random() * 10)] if rng.random() < share else letters[int(rng.random() * 26)]
        for _ in range(length)
    ]
    marks[int(rng.random() * length)] = letters[int(rng.random() * 26)]
    return "".join(marks)


def open_word(rng: Random) -> str:
    """A third each: an English word, a pseudo-word, a code of 2 to 8 characters; all may be new to the reader."""
    draw = rng.random() * 3
    if draw < 1:
        return english(rng)
    return pseudo_word(rng) if draw < 2 else code(rng, 2, 8)


def name(rng: Random) -> str:
    """A capitalised word: two thirds pseudo-words, a third English nouns."""
    word = NOUNS[int(rng.random() * len(NOUNS))] if rng.random() < 1 / 3 else pseudo_word(rng)
    return word.capitalize()


def distinct(rng: Random, maker: Callable[[Random], str], count: int) -> list[str]:
    """`count` different words of `maker`, in the order drawn. Does not end if the maker has too few."""
    found: dict[str, None] = {}
    while len(found) < count:
        found[maker(rng)] = None
    return list(found)


_ENGLISH_SET = frozenset(ENGLISH + FURTHER)
