"""Repeating a text of words, pseudo-words and codes, or a single code."""

import random

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


def make(rng: random.Random, wording: Wording) -> Prompt:
    """One text of 1 to 60 words; every sixth is a single code."""
    if rng.random() < 1 / 6:
        text = code(rng)
    else:
        text = " ".join(open_word(rng) for _ in range(rng.randint(1, MOST_WORDS)))
    return Prompt("copy", ask(wording.fill(text=text)), text, wording.held_out, reply=content(text))
