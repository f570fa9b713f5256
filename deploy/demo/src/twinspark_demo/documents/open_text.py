"""Texts to be copied: 1 to 60 words of every sort with every punctuation, repeated words and near-identical codes."""

from collections.abc import Callable
from random import Random

from twinspark_demo.documents.words import any_english, code, name, open_word, pseudo_word

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_JOINTS = "--__..//:@#+&%=~"
_SIGNS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
# First and last code point of letters and signs: Latin, Greek, Cyrillic, mathematics, CJK, Hangul, emoji.
_SCRIPTS = ((0xC0, 0x17F), (0x391, 0x3C9), (0x410, 0x44F), (0x2190, 0x22FF), (0x4E00, 0x9FA5), (0xAC00, 0xD7A3),
            (0x1F300, 0x1F64F))  # fmt: skip
_ACCENTS = {"a": "\u00e4", "e": "\u00e9", "i": "\u00ee", "o": "\u00f6", "u": "\u00fc", "n": "\u00f1", "c": "\u00e7"}

Maker = Callable[[Random], str]


def mixed_case_code(rng: Random) -> str:
    """Such as 7xK2q."""
    return "".join(mark.upper() if rng.random() < 0.4 else mark for mark in code(rng, 3, 8).lower())


def joined(rng: Random) -> str:
    """Such as 7xK2q-91 or lamp_old.tree: two or three parts joined by one mark."""
    joint = _JOINTS[int(rng.random() * len(_JOINTS))]
    makers = (any_english, pseudo_word, mixed_case_code, number, code)
    return joint.join(makers[int(rng.random() * len(makers))](rng) for _ in range(2 + int(rng.random() * 2)))


def number(rng: Random) -> str:
    """A number of one to five digits."""
    return str(int(rng.random() * 10 ** (1 + int(rng.random() * 5))))


def signed(rng: Random) -> str:
    """Two words with one to three signs between them, such as `lamp&&7xk` or `{tree}`."""
    left, right = (single(rng) if rng.random() < 0.85 else "" for _ in range(2))
    signs = "".join(_SIGNS[int(rng.random() * len(_SIGNS))] for _ in range(1 + int(rng.random() * 3)))
    return left + signs + right


def foreign(rng: Random) -> str:
    """One to five letters or signs of one script."""
    low, high = _SCRIPTS[int(rng.random() * len(_SCRIPTS))]
    return "".join(chr(low + int(rng.random() * (high - low + 1))) for _ in range(1 + int(rng.random() * 5)))


def near(rng: Random, word: str) -> str:
    """The word with one or two characters exchanged, added or dropped."""
    marks = list(word)
    for _ in range(1 + int(rng.random() * 2)):
        at = int(rng.random() * len(marks))
        other = str(int(rng.random() * 10)) if marks[at].isdigit() else _LETTERS[int(rng.random() * 26)]
        if marks[at].isupper():
            other = other.upper()
        draw = rng.random()
        if draw < 0.7:
            marks[at] = other
        elif draw < 0.85:
            marks.insert(at, other)
        elif len(marks) > 2:
            del marks[at]
    return "".join(marks)


def _odd(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.25:
        return mixed_case_code(rng)
    if draw < 0.45:
        return joined(rng)
    if draw < 0.6:
        return number(rng)
    if draw < 0.75:
        return signed(rng)
    if draw < 0.85:
        return foreign(rng)
    if draw < 0.93:
        return any_english(rng).upper()
    return "".join(_ACCENTS.get(mark, mark) if rng.random() < 0.5 else mark for mark in pseudo_word(rng))


def _open(rng: Random) -> str:
    return any_english(rng) if rng.random() < 0.4 else open_word(rng)


def _any(rng: Random) -> str:
    return _open(rng) if rng.random() < 0.85 else _odd(rng)


def single(rng: Random) -> str:
    """One word or code."""
    makers = (any_english, any_english, pseudo_word, code, code, mixed_case_code, joined, joined, name, number)
    return makers[int(rng.random() * len(makers))](rng)


def words(rng: Random, count: int, repeats: bool = False) -> list[str]:
    """`count` words of one of several mixtures; of one with repeated or near-identical words if `repeats`."""
    draw = rng.random() if not repeats else 0.5 + rng.random() / 2
    if draw < 0.5:
        makers: tuple[Maker, ...] = (any_english, any_english, any_english, pseudo_word, code, _open, _open, _any, _any,
                                     name)  # fmt: skip
        maker = makers[int(rng.random() * len(makers))]
        return [maker(rng) for _ in range(count)]
    if draw < 0.7:  # few words, many times: where is one in the text is the question
        few = [_any(rng) for _ in range(2 + count // 6 + int(rng.random() * (count // 3 + 1)))]
        return [few[int(rng.random() * len(few))] for _ in range(count)]
    if draw < 0.85:  # near-identical codes
        maker = (code, code, mixed_case_code, pseudo_word, joined)[int(rng.random() * 5)]
        found = [maker(rng)]
        while len(found) < count:
            found.append(near(rng, found[int(rng.random() * len(found))]) if rng.random() < 0.7 else maker(rng))
        return found
    found = []  # words that come back among others
    while len(found) < count:
        again = found and rng.random() < 0.3
        found.append(found[int(rng.random() * len(found))] if again else _any(rng))
    return found


def _comma(rng: Random, count: int) -> list[str]:
    return [", "] * (count - 1)


def _line(rng: Random, count: int) -> list[str]:
    share = (1.0, 0.5, 0.2, 0.1)[int(rng.random() * 4)]
    between = _LINE_ENDS[int(rng.random() * len(_LINE_ENDS))]
    return [between if rng.random() < share else " " for _ in range(count - 1)]


def _sentence(rng: Random, count: int) -> list[str]:
    return [_MARKS[int(rng.random() * len(_MARKS))] if rng.random() < 0.25 else " " for _ in range(count - 1)]


_LINE_ENDS = ("\n", "\n", "\n", "\n\n", "\n\n", "\n- ", "\n* ", "\n\u2022 ", ".\n", ":\n", "\t", " | ", "|", ",")
_MARKS = (", ", ", ", ", ", ", ", ". ", ". ", ". ", ". ", "; ", ": ", "! ", "? ", " - ", "... ", ".\n", ".\n\n", "!\n",
          "?\n", "!\n\n", ":\n", ":\n\n", ":\n- ", '":\n', " | ", " -> ", " = ", " = ? ", " + ", " \u2212 ", " \u00d7 ",
          "/ ", " / ", "--", '" ', ' "', "` ", " `", ") ", " (", "> ")  # fmt: skip
_SEPARATIONS = (_comma, _line, _sentence, _sentence)


def text(rng: Random, count: int, repeats: bool = False) -> str:
    """A text of `count` words (`repeats`: see `words`), without space at its ends, not in quotes as a whole."""
    if count == 1:
        return single(rng)
    found = words(rng, count, repeats)
    draw = rng.random()
    if draw < 0.45:
        return " ".join(found)
    separators = _SEPARATIONS[int(rng.random() * 4)](rng, count)
    if draw < 0.65:
        found = _decorated(rng, found)
    written = found[0] if rng.random() < 0.5 else found[0].capitalize()
    for separator, word in zip(separators, found[1:], strict=True):
        capital = separator[0] in ".!?" and rng.random() < 0.8
        written += separator + (word.capitalize() if capital else word)
    return written + ("", ".", ".", "!", "?")[int(rng.random() * 5)]


def _decorated(rng: Random, found: list[str]) -> list[str]:
    """Some words behind the first in quotes, in parentheses, capitalised, possessive."""
    forms = ('"{}"', '"{}".', "'{}'", "'{}'.", "`{}`", '"{}"?', "({})", "({}).", "[{}]", "{}'s", "*{}*", "${}", "{}%")
    decorated = found[:1]
    for word in found[1:]:
        draw = rng.random()
        if draw < 0.12:
            decorated.append(forms[int(rng.random() * len(forms))].replace("{}", word))
        else:
            decorated.append(word.capitalize() if draw < 0.25 else word)
    return decorated
