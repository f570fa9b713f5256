"""Repeating a text of words, pseudo-words and codes, English sentences, or a single code."""

import random

from twinspark_demo.evaluation.english_text import plain_text, request_text
from twinspark_demo.evaluation.prompt import Prompt, Wording, ask, content, wordings
from twinspark_demo.evaluation.words import code, open_word

WORDINGS = wordings(
    [
        "Repeat this: {text}",
        "Copy this text: {text}",
        "Repeat after me: {text}",
        "Echo the following: {text}",
        "Write this again, word for word: {text}",
        "Please repeat exactly: {text}",
        "Repeat the following text.\n{text}",
        "Copy the line below.\n{text}",
    ],
    [
        "I want you to repeat what I say: {text}",
        "Be my echo and repeat every word of this: {text}",
        "My printer is broken, so copy this for me, please: {text}",
    ],
)
MOST_WORDS = 60
_CODE_SHARE, _SENTENCE_SHARE = 1 / 6, 1 / 3
_REQUEST_SHARE, _CAPITAL_SHARE = 1 / 2, 1 / 4


def make(rng: random.Random, wording: Wording) -> Prompt:
    """A sixth are a single code, a third English sentences, of which half are requests, the others 1 to 60 words."""
    text = _draw_text(rng)
    return Prompt("copy", ask(wording.fill(text=text)), text, wording.held_out, reply=content(text))


def _draw_text(rng: random.Random) -> str:
    draw = rng.random()
    if draw < _CODE_SHARE:
        return code(rng)
    if draw < _CODE_SHARE + _SENTENCE_SHARE:
        return request_text(rng) if rng.random() < _REQUEST_SHARE else plain_text(rng)
    return " ".join(_draw_word(rng) for _ in range(rng.randint(1, MOST_WORDS)))


def _draw_word(rng: random.Random) -> str:
    """A quarter begin with a capital letter, unless with a digit."""
    word = open_word(rng)
    return word[0].upper() + word[1:] if rng.random() < _CAPITAL_SHARE else word
