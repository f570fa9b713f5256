"""Tools are offered, and the request needs two calls, of one function or of two."""

from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.tool_calls import Call, held, offer, reply_with, user
from twinspark_demo.documents.tool_requests import clause, joined, pair
from twinspark_demo.documents.turn import Setting
from twinspark_demo.knowledge import FUNCTIONS

KIND = "tool_two"


def make(rng: Random, budget: int) -> Conversation:
    """One request and its calls in the order asked; `budget` is far from being reached."""
    text, calls = request(rng)
    tools = offer(rng, [function for function, _ in calls])
    return held(Setting.draw(rng), KIND, (user(text), reply_with(calls)), tools)


def request(rng: Random) -> tuple[str, list[Call]]:
    """A message that asks for two calls, and the calls."""
    function = rng.choice(FUNCTIONS)
    if rng.random() < 0.3:
        text, first, second = pair(rng, function)
        return text, [(function, first), (function, second)]
    other = function if rng.random() < 0.2 else rng.choice(FUNCTIONS)
    clauses = clause(rng, function), clause(rng, other)
    return joined(rng, *clauses), [(asked.function, asked.arguments) for asked in clauses]
