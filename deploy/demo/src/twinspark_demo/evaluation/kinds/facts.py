"""What the model knows by heart: capitals, opposites, amounts, colours."""

import random
from collections.abc import Mapping

from twinspark_demo import knowledge
from twinspark_demo.evaluation.prompt import Prompt, Wording, ask, content, wordings

BY_TOPIC: Mapping[str, tuple[Wording, ...]] = {
    "capital": wordings(
        ["What is the capital of {a}?", "Name the capital of {a}.", "Which city is the capital of {a}?"],
        ["A card in my game asks for the capital of {a}."],
    ),
    "opposite": wordings(
        ["What is the opposite of {a}?", "Give me the opposite of {a}.", "Which word is the opposite of {a}?"],
        ["In a crossword I need the opposite of {a}. What is it?"],
    ),
    "amount": wordings(
        ["How many {a} does a {b} have?", "How many {a} are there in a {b}?", "A {b} has how many {a}?"],
        ["The last question of our pub quiz was how many {a} a {b} has."],
    ),
    "colour": wordings(
        ["What colour is {a}?", "What is the colour of {a}?", "Tell me the colour of {a}."],
        ["If I paint a picture, what colour should {a} be?"],
    ),
}
WORDINGS = tuple(wording for topic in BY_TOPIC.values() for wording in topic)
_OPPOSITES = {**knowledge.OPPOSITES, **{second: first for first, second in knowledge.OPPOSITES.items()}}
_SINGULAR_EXCEPTIONS = {"hour": "an hour", "insect": "an insect", "octopus": "an octopus", "alphabet": "the alphabet"}


def make(rng: random.Random, wording: Wording) -> Prompt:
    """One fact of the wording's topic."""
    topic = next(topic for topic, found in BY_TOPIC.items() if wording in found)
    question, answer = _draw(rng, topic, wording)
    return Prompt("facts", ask(question), answer, wording.held_out, reply=content(answer))


def _draw(rng: random.Random, topic: str, wording: Wording) -> tuple[str, str]:
    if topic == "amount":
        (things, whole), amount = rng.choice(list(knowledge.AMOUNTS.items()))
        text = wording.text
        if whole in _SINGULAR_EXCEPTIONS:
            article = _SINGULAR_EXCEPTIONS[whole]
            text = text.replace("a {b}", article).replace("A {b}", article[0].upper() + article[1:])
        return text.format(a=things, b=whole), str(amount)
    tables = {"capital": knowledge.CAPITALS, "opposite": _OPPOSITES, "colour": knowledge.COLOURS}
    known, answer = rng.choice(list(tables[topic].items()))
    return wording.fill(a=known), answer
