"""Ordinary English texts to be copied: plain ones, and ones that are themselves requests."""

import random
import re
from collections.abc import Mapping

from twinspark_demo.evaluation.words import Maker, english, name, noun, pseudo_word
from twinspark_demo.knowledge import CAPITALS

_MOST_SENTENCES = 4
_REQUEST_SHARE = 2 / 3
"""Of the sentences in a text of requests; the others are plain."""
_OPEN_SHARE = 1 / 5
"""Of the texts that end in a full stop, how many lose it."""

PLAIN_FRAMES = (
    "The {noun} {verb} before {time}, but the {noun} did not.",
    "{name} keeps {number} of them in a {adjective} {noun}.",
    "Last {day} the two of us {verb} with {name} outside {town}.",
    "Nobody told {name} why the {noun} is so {adjective}.",
    "I don't think that this {adjective} {noun} belongs to {name}.",
    "They {verb}, they {verb}, and then the {noun} was gone!",
    "If the {noun} is {adjective}, {name} will stay in {town} until {day}.",
    "It's {time} already; the {noun} should be here.",
    'My teacher says that "{word}" is hard to spell.',
    "We paid {number} coins for one {noun} and got another (it was {adjective}).",
    "Her {noun} costs less than yours.",
    "Some people prefer {word}, others prefer {word}: that is how it is.",
    "{name} and {name} {verb} only because of some {adjective} {noun}.",
    "There are {number} {adjective} things inside my {noun}.",
    "Both of us {verb} when {name} came home.",
    "The weather in {town} was {adjective} on {day}, wasn't it?",
    "As far as anybody knows, {word} and {word} mean nothing there.",
    "You can't eat a {noun} with your {noun}!",
    "Yesterday {name} read {number} pages about the {noun} of {town}.",
    "Well, perhaps the server was too {adjective} for {name}.",
)
REQUEST_FRAMES = (
    "What is the capital of {country}?",
    "Add {number} and {number}.",
    "Write the {noun} records as JSON.",
    "Tell me a joke.",
    "Tell me a joke about one {noun} and {number} friends.",
    "Call the {noun} at {time}.",
    "How old is {name}?",
    "Count down from {number}.",
    "Translate {word} into {language}, please.",
    "Can you help {name} with the {noun}?",
    "Rename the variable {word} to {word}.",
    "Don't answer {name} before {day}.",
    "Remind me to buy a {adjective} {noun} on {day}.",
    "What time is it in {town}?",
    "Please repeat the word {word}.",
    "Copy the lines above and send them to {name}.",
    "Send the {adjective} {noun} to {town}.",
    "Is {number} more than {number}?",
    "Hello, where can I find the {noun}?",
    "Explain to me how a {noun} works.",
    "Which is better, {word} or {word}?",
    "What is my name?",
    "Book a table in {town} for {name} at {time}!",
    "How do I convert {number} dollars to euros?",
    "What is {number} minus {number}?",
    "Good morning, are you there?",
    "Thank you, and now open the {noun}.",
    "Set an alarm for {time}.",
    "Why is the {noun} {adjective}?",
    "Give me the code of {name}, and nothing else.",
)
_VOWEL_NEXT = re.compile(r"\ba (?=[aeio]|u(?!ni|s)|hour|honest)")
_ADJECTIVES = (
    "late", "silent", "strange", "blue", "tired", "expensive", "empty", "friendly", "wrong", "famous", "slow", "clean",
    "careful", "terrible", "modern", "warm",
)  # fmt: skip
_VERBS = (
    "laughed", "arrived", "worked", "talked", "danced", "ran", "sang", "fell", "stopped", "left", "cried", "returned",
    "agreed", "waited", "jumped", "swam",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_TIMES = ("ten", "noon", "half past six", "midnight", "a quarter to nine")
_LANGUAGES = ("French", "German", "Spanish", "Italian", "Greek", "Polish")
_SLOTS: Mapping[str, Maker] = {
    "noun": noun,
    "word": english,
    "name": name,
    "town": lambda rng: pseudo_word(rng).capitalize(),
    "country": lambda rng: rng.choice((*CAPITALS, name(rng))),
    "number": lambda rng: str(rng.randint(2, 99)),
    "adjective": lambda rng: rng.choice(_ADJECTIVES),
    "verb": lambda rng: rng.choice(_VERBS),
    "day": lambda rng: rng.choice(_DAYS),
    "time": lambda rng: rng.choice((*_TIMES, f"{rng.randint(1, 12)}:{rng.randint(0, 59):02}")),
    "language": lambda rng: rng.choice(_LANGUAGES),
}


def plain_text(rng: random.Random) -> str:
    """1 to 4 sentences that tell something, of at most 15 words each."""
    return " ".join(filled(rng, PLAIN_FRAMES) for _ in range(rng.randint(1, _MOST_SENTENCES)))


def request_text(rng: random.Random) -> str:
    """1 to 4 sentences of at most 15 words: one asks for something, at any place, as do most of the others."""
    asked = [filled(rng, REQUEST_FRAMES)]
    for _ in range(rng.randint(0, _MOST_SENTENCES - 1)):
        frames = REQUEST_FRAMES if rng.random() < _REQUEST_SHARE else PLAIN_FRAMES
        asked.insert(rng.choice((0, len(asked))), filled(rng, frames))
    text = " ".join(asked)
    return text[:-1] if text.endswith(".") and rng.random() < _OPEN_SHARE else text


def filled(rng: random.Random, frames: tuple[str, ...]) -> str:
    """A drawn sentence; every place of it is drawn by itself."""
    text = rng.choice(frames)
    while "{" in text:
        before, _, rest = text.partition("{")
        slot, _, after = rest.partition("}")
        text = before + _SLOTS[slot](rng) + after
    return _VOWEL_NEXT.sub("an ", text)
