"""Tools are offered, and the request needs two calls, of one function or of two."""

from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.tool_calls import Call, held, offer, reply_with, user
from twinspark_demo.documents.tool_requests import clause, joined, pair, sentence
from twinspark_demo.documents.tool_stories import story, with_remarks
from twinspark_demo.documents.turn import Setting
from twinspark_demo.knowledge import FUNCTIONS, Function

KIND = "tool_two"
_STORY_SHARE = 0.15


def make(rng: Random, budget: int) -> Conversation:
    """One request and its calls in the order asked; `budget` is far from being reached."""
    text, calls = request(rng)
    tools = offer(rng, [function for function, _ in calls])
    return held(Setting.draw(rng), KIND, (user(text), reply_with(calls)), tools)


def request(rng: Random) -> tuple[str, list[Call]]:
    """A message that asks for two calls, and the calls."""
    function = rng.choice(FUNCTIONS)
    if rng.random() < 0.22:
        text, first, second = pair(rng, function)
        return with_remarks(rng, text), [(function, first), (function, second)]
    other = function if rng.random() < 0.3 else rng.choice(FUNCTIONS)
    if rng.random() < _STORY_SHARE:
        return _told(rng, function, other)
    clauses = clause(rng, function), clause(rng, other)
    text = with_remarks(rng, joined(rng, *clauses))
    return text, [(asked.function, asked.arguments) for asked in clauses]


def _told(rng: Random, function: Function, other: Function) -> tuple[str, list[Call]]:
    """A story of the one and a sentence, or a story, of the other."""
    text, arguments = story(rng, function)
    stop = "" if text[-1] in ".?!" else "."
    if rng.random() < 0.3:
        further, second = story(rng, other)
    else:
        asked = clause(rng, other)
        further, second = sentence(rng, asked), asked.arguments
    joiner = rng.choice((" ", " ", "\n", " Also: ", " And: ", " After that: ", " Then: "))
    return text + stop + joiner + further, [(function, arguments), (other, second)]
