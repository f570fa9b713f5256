"""Tools are offered and none fits: small talk, questions of other kinds, requests for another function."""

import random

from twinspark_demo.evaluation.kinds import arithmetic, facts
from twinspark_demo.evaluation.kinds.calls import BY_NAME, draw_call, draw_tools
from twinspark_demo.evaluation.kinds.requests import REQUESTS, function_name_of
from twinspark_demo.evaluation.prompt import Prompt, Wording, ask, wordings

SMALL_TALK = wordings(
    [
        "Hello, how are you?",
        "Good morning!",
        "Thank you very much.",
        "Tell me a joke.",
        "Who are you?",
        "What do you think about music?",
        "I am tired today.",
        "Do you like winter?",
    ],
    ["It was a long day, I just want to chat a little.", "Write me a poem about the sea.", "Do you ever get bored?"],
)
_REQUESTS = tuple(wording for found in REQUESTS.values() for wording in found)
_QUESTIONS = (*facts.WORDINGS, *arithmetic.WORDINGS)
WORDINGS = (*SMALL_TALK, *_QUESTIONS[::3], *_REQUESTS[::3], *_REQUESTS[2::6])


def make(rng: random.Random, wording: Wording) -> Prompt:
    """No call is right; whatever else is said is."""
    unneeded = ""
    if wording in _REQUESTS:
        unneeded = function_name_of(wording)
        text = wording.fill(**draw_call(rng, BY_NAME[unneeded]).arguments)
    elif wording in SMALL_TALK:
        text = wording.text
    else:
        kind = facts if wording in facts.WORDINGS else arithmetic
        text = kind.make(rng, wording).messages[0]["content"]
    tools = draw_tools(rng, [], without=unneeded)
    return Prompt("tool_none", ask(text), None, wording.held_out, tools=tools)
