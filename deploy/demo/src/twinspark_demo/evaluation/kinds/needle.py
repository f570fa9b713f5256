"""One code of 33 that are hidden in filler: more than a recurrent state can hold."""

import random

from twinspark_demo.evaluation.filler import FIXED_WORDS, TOKENS_PER_SENTENCE, sentences
from twinspark_demo.evaluation.prompt import Prompt, Wording, ask, content, wordings
from twinspark_demo.evaluation.words import any_name, code, not_within_each_other, words_of

WORDINGS = wordings(
    [
        "What is the code of {name}?",
        "Which code belongs to {name}?",
        "Tell me the code of {name}.",
        "Give me the code of {name}.",
        "What code does {name} have?",
        "Find the code of {name}.",
        "Say the code of {name}.",
        "Question: what is the code of {name}?",
    ],
    [
        "I lost my notes. What was the code of {name} again?",
        "{name} is at the door, which code is the right one for {name}?",
        "Look through the text above and tell me the code of {name}.",
    ],
)
STATEMENTS = wordings(
    [
        "The code of {name} is {code}.",
        "{name} has the code {code}.",
        "{code} is the code of {name}.",
        "Code of {name}: {code}.",
        "The code for {name} is {code}.",
        "{name} uses the code {code}.",
        "For {name} the code is {code}.",
        "The code {code} belongs to {name}.",
    ],
    [
        "Since last year the code of old {name} is {code}.",
        "Beside the door of {name} stands the code {code}.",
        "On the key ring of {name} somebody engraved the code {code}.",
    ],
)
_TAKEN = FIXED_WORDS | words_of(*(wording.text for wording in (*WORDINGS, *STATEMENTS)))
NUM_CODES = 33
SIZES = (100, 1_000, 8_000)
"""Tokens of filler."""


def make(
    rng: random.Random, wording: Wording, num_tokens: int, tokens_per_sentence: float = TOKENS_PER_SENTENCE
) -> Prompt:
    """All names and codes differ, and none is a part of another. A held-out question asks for a held-out statement.

    A name is any word that neither filler nor the sentences about codes hold.
    """
    names = not_within_each_other(rng, lambda drawn: any_name(drawn, _TAKEN), NUM_CODES)
    codes = not_within_each_other(rng, code, NUM_CODES)
    asked = rng.randrange(NUM_CODES)
    statements = []
    for place, (who, secret) in enumerate(zip(names, codes, strict=True)):
        is_held_out = wording.held_out and place == asked
        usable = [statement for statement in STATEMENTS if statement.held_out == is_held_out]
        statements.append(rng.choice(usable).fill(name=who, code=secret))
    text = " ".join(_hide(rng, statements, sentences(rng, num_tokens, tokens_per_sentence)))
    question = wording.fill(name=names[asked])
    expected = {"code": codes[asked], "others": [other for other in codes if other != codes[asked]]}
    kind = f"needle_{num_tokens}"
    return Prompt(kind, ask(f"{text}\n{question}"), expected, wording.held_out, reply=content(codes[asked]))


def _hide(rng: random.Random, statements: list[str], filler: list[str]) -> list[str]:
    """Both lists in one, each in its own order, mixed at random."""
    takes = [True] * len(statements) + [False] * len(filler)
    rng.shuffle(takes)
    hidden, rest = iter(statements), iter(filler)
    return [next(hidden) if take else next(rest) for take in takes]
