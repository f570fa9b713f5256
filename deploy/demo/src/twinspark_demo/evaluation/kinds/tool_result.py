"""A conversation in which a function has just returned: its values are to be told."""

import json
import random

from twinspark_demo.evaluation.kinds import tool_one
from twinspark_demo.evaluation.kinds.calls import BY_NAME, draw_result
from twinspark_demo.evaluation.prompt import Prompt, Wording

WORDINGS = tool_one.WORDINGS
CALL_ID = "call_1"


def make(rng: random.Random, wording: Wording) -> Prompt:
    """The sentence is free, so only the values are known."""
    asked = tool_one.make(rng, wording)
    call = asked.expected[0]
    result = draw_result(rng, BY_NAME[call.name])
    messages = (
        *asked.messages,
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "",
            "tool_calls": [{"id": CALL_ID, **call.as_message_part()}],
        },
        {"role": "tool", "tool_call_id": CALL_ID, "content": json.dumps(result)},
    )
    return Prompt("tool_result", messages, list(result.values()), wording.held_out, tools=asked.tools)
