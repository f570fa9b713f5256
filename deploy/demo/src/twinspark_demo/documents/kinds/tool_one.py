"""Tools are offered, and the request needs one call."""

from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.tool_calls import held, offer, reply_with, user
from twinspark_demo.documents.tool_stories import request
from twinspark_demo.documents.turn import Setting
from twinspark_demo.knowledge import FUNCTIONS

KIND = "tool_one"


def make(rng: Random, budget: int) -> Conversation:
    """One request and its call; `budget` is far from being reached."""
    function = rng.choice(FUNCTIONS)
    text, arguments = request(rng, function)
    messages = user(text), reply_with([(function, arguments)])
    return held(Setting.draw(rng), KIND, messages, offer(rng, [function]))
