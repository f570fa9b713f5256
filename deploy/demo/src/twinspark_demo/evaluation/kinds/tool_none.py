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
DECLINED = "I have no tool for that."
"""What the model says where it lacks a function."""
_REQUESTS = tuple(wording for found in REQUESTS.values() for wording in found)
_QUESTIONS = (*facts.WORDINGS, *arithmetic.WORDINGS)
WORDINGS = (*SMALL_TALK, *_QUESTIONS[::3], *_REQUESTS[::3], *_REQUESTS[2::6])


def make(rng: random.Random, wording: Wording) -> Prompt:
    """No call is right. A question is answered as ever, a request for another function is declined; talk is free."""
    unneeded = ""
    expected: str | int | None = None
    if wording in _REQUESTS:
        unneeded = function_name_of(wording)
        text, expected = wording.fill(**draw_call(rng, BY_NAME[unneeded]).arguments), DECLINED
    elif wording in SMALL_TALK:
        text = wording.text
    else:
        kind = facts if wording in facts.WORDINGS else arithmetic
        asked = kind.make(rng, wording)
        text, expected = asked.messages[0]["content"], asked.expected
    tools = draw_tools(rng, [], without=unneeded)
    return Prompt("tool_none", ask(text), expected, wording.held_out, tools=tools)
