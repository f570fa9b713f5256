"""Sentences that say nothing of importance: what codes are hidden in."""

import random

from twinspark_demo.evaluation.words import noun, pseudo_word, words_of

TOKENS_PER_SENTENCE = 18.0
"""Where no tokenizer says better: tokens of a sentence and the space after it, on average."""
SAMPLE_SENTENCES = 200

_ADJECTIVES = (
    "old", "quiet", "small", "narrow", "heavy", "bright", "dusty", "gentle", "broken", "wooden", "early", "pale",
    "round", "distant", "patient", "curious", "golden",
)  # fmt: skip
_VERBS = (
    "stood", "rested", "waited", "leaned", "slept", "turned", "moved", "lay", "stayed", "wandered", "drifted",
    "hung", "appeared", "gathered", "settled", "shone",
)  # fmt: skip
_PLACES = ("near", "behind", "under", "beside", "above", "across from", "next to", "in front of")
_FRAMES = (
    "The {adjective} {noun} {verb} {place} the {other}.",
    "A {noun} {verb} {place} the {adjective} {other}.",
    "In the morning the {noun} {verb} {place} a {other}.",
    "Nobody saw how the {noun} {verb} {place} the {adjective} {other}.",
    "Every {noun} of {town} {verb} {place} the {other}.",
    "Later a {adjective} {noun} and a {other} {verb} there.",
    "It rained, and the {noun} {verb} {place} the {other}.",
    "People of {town} like the {adjective} {noun} and the {other}.",
    "That day the {noun} was {adjective}, and the {other} was not.",
)
FIXED_WORDS = words_of(*_ADJECTIVES, *_VERBS, *_PLACES, *_FRAMES)
"""All that may stand in a sentence but its nouns and towns."""


def sentence(rng: random.Random) -> str:
    """One sentence, full stop included."""
    return rng.choice(_FRAMES).format(
        adjective=rng.choice(_ADJECTIVES),
        noun=noun(rng),
        other=noun(rng),
        verb=rng.choice(_VERBS),
        place=rng.choice(_PLACES),
        town=pseudo_word(rng).capitalize(),
    )


def sentences(rng: random.Random, num_tokens: int, tokens_per_sentence: float) -> list[str]:
    """About that many tokens of sentences."""
    return [sentence(rng) for _ in range(max(1, round(num_tokens / tokens_per_sentence)))]


def sample_text() -> str:
    """SAMPLE_SENTENCES sentences, always the same: what a tokenizer is measured with."""
    rng = random.Random(0)
    return " ".join(sentence(rng) for _ in range(SAMPLE_SENTENCES))
