"""A request that needs two calls, of the same function or of two."""

import random

from twinspark_demo.evaluation.kinds.calls import BY_NAME, Call, draw_call, draw_tools
from twinspark_demo.evaluation.kinds.requests import COMMANDS
from twinspark_demo.evaluation.prompt import Prompt, Wording, ask, wordings

WORDINGS = wordings(
    [
        "{First} and {second}.",
        "Please {first} and {second}.",
        "First {first}, then {second}.",
        "{First}, then {second}.",
        "Can you {first} and {second}?",
        "I need two things: {first} and {second}.",
        "{First} and also {second}.",
        "{First}. Then {second}.",
    ],
    [
        "Two tasks for you: {first}, and after that {second}.",
        "Do both of these for me: {first} and {second}.",
        "My hands are full, so {first} and {second}, please.",
    ],
)


def make(rng: random.Random, wording: Wording) -> Prompt:
    """Every third time both calls are of one function, with different arguments."""
    names = rng.sample(list(COMMANDS), 2)
    if rng.random() < 1 / 3:
        names[1] = names[0]
    calls = [draw_call(rng, BY_NAME[name]) for name in names]
    while calls[0] == calls[1]:
        calls[1] = draw_call(rng, BY_NAME[names[1]])
    first, second = map(_command, calls)
    text = wording.fill(first=first, First=first[0].upper() + first[1:], second=second)
    reply = {"content": "", "tool_calls": [call.as_message_part() for call in calls]}
    return Prompt("tool_two", ask(text), calls, wording.held_out, tools=draw_tools(rng, names), reply=reply)


def _command(call: Call) -> str:
    return COMMANDS[call.name].format(**call.arguments)
