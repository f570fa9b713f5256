"""A detail that is told in the first turn and asked for in the fourth, with other questions between."""

import random
from dataclasses import dataclass

from twinspark_demo.evaluation.kinds import arithmetic, counting, facts
from twinspark_demo.evaluation.prompt import Prompt, Wording, ask, content, wordings
from twinspark_demo.evaluation.words import Maker, code, name


@dataclass(frozen=True, slots=True)
class _Detail:
    """What can be told: how, how it is asked for, and what it may be."""

    told: tuple[str, ...]
    asked: tuple[Wording, ...]
    draw: Maker


_COLOURS = ("green", "blue", "red", "yellow", "orange", "purple", "brown", "pink", "grey", "white", "black")
_DETAILS = (
    _Detail(
        ("My name is {x}.", "Hello, I am called {x}.", "Hi! My name is {x}, nice to meet you."),
        wordings(["What is my name?", "Do you remember my name?"], ["How do people call me? I mean my name."]),
        name,
    ),
    _Detail(
        ("I live in the city of {x}.", "I live in {x}.", "My home city is {x}."),
        wordings(["Which city do I live in?", "In which city do I live?"], ["Now tell me which city is my home city."]),
        name,
    ),
    _Detail(
        ("I have a pet called {x}.", "My pet is called {x}.", "The name of my pet is {x}."),
        wordings(["What is the name of my pet?", "What is my pet called?"], ["Can you recall what name my pet has?"]),
        name,
    ),
    _Detail(
        ("My favourite colour is {x}.", "The colour that I like most is {x}.", "I like the colour {x} best."),
        wordings(
            ["What is my favourite colour?", "Which colour do I like best?"],
            ["I told you a favourite colour before. Which one?"],
        ),
        lambda rng: rng.choice(_COLOURS),
    ),
    _Detail(
        ("My lucky number is {x}.", "Remember my lucky number: {x}.", "The number that brings me luck is {x}."),
        wordings(
            ["What is my lucky number?", "Which lucky number do I have?"], ["Back to my lucky number: what is it?"]
        ),
        lambda rng: str(rng.randint(2, 999)),
    ),
    _Detail(
        ("I am in room {x}.", "My room is number {x}.", "I am staying in room {x}."),
        wordings(
            ["Which room am I in?", "What is my room number?"], ["I have to go back to my room. Which number is it?"]
        ),
        lambda rng: str(rng.randint(2, 999)),
    ),
    _Detail(
        ("My code is {x}.", "Remember this code: {x}.", "The code of my locker is {x}."),
        wordings(["What is my code?", "What was the code?"], ["At the start I gave you a code. What is it?"]),
        code,
    ),
    _Detail(
        ("My dog is called {x}.", "I have a dog, and the name of my dog is {x}."),
        wordings(
            ["What is the name of my dog?", "What is my dog called?"], ["Someone found my dog and asks for its name."]
        ),
        name,
    ),
)
WORDINGS = tuple(wording for detail in _DETAILS for wording in detail.asked)


def make(rng: random.Random, wording: Wording) -> Prompt:
    """Four turns of the user: a detail, two questions of other kinds, the question for the detail."""
    detail = next(detail for detail in _DETAILS if wording in detail.asked)
    secret = detail.draw(rng)
    between = [_question(rng) for _ in range(2)]
    return Prompt(
        "follow_up",
        ask(rng.choice(detail.told).format(x=secret)),
        secret,
        wording.held_out,
        later_turns=(*between, wording.text),
        reply=content(secret),
    )


def _question(rng: random.Random) -> str:
    """A short question of another kind, in a usual wording."""
    module = rng.choice((arithmetic, facts, counting))
    usual = [wording for wording in module.WORDINGS if not wording.held_out]
    text = module.make(rng, rng.choice(usual)).messages[0]["content"]
    return str(text)
