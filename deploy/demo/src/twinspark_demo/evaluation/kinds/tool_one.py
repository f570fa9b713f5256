"""A request that needs one call of one of the offered functions."""

import random

from twinspark_demo.evaluation.kinds.calls import BY_NAME, draw_call, draw_tools
from twinspark_demo.evaluation.kinds.requests import REQUESTS, function_name_of
from twinspark_demo.evaluation.prompt import Prompt, Wording, ask

WORDINGS = tuple(wording for found in REQUESTS.values() for wording in found)


def make(rng: random.Random, wording: Wording) -> Prompt:
    """The wording says which function."""
    call = draw_call(rng, BY_NAME[function_name_of(wording)])
    reply = {"content": "", "tool_calls": [call.as_message_part()]}
    text = wording.fill(**call.arguments)
    return Prompt("tool_one", ask(text), [call], wording.held_out, tools=draw_tools(rng, [call.name]), reply=reply)
