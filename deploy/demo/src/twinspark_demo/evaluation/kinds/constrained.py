"""Requests of other kinds under a constraint on the form of the reply, and a loop of a call and its result."""

import json
import random
from dataclasses import replace
from typing import Any

from twinspark_demo.evaluation.kinds import json_array, tool_one, tool_two
from twinspark_demo.evaluation.kinds.calls import BY_NAME, draw_result
from twinspark_demo.evaluation.prompt import Prompt, ToolStep, Wording

JSON_TYPES = {str: "string", int: "integer"}


def make_records(rng: random.Random, wording: Wording) -> Prompt:
    """A JSON array under a schema of its records."""
    prompt = json_array.make(rng, wording)
    first = prompt.expected[0]
    record = {
        "type": "object",
        "properties": {name: {"type": JSON_TYPES[type(value)]} for name, value in first.items()},
        "required": list(first),
        "additionalProperties": False,
    }
    schema = {"name": "records", "schema": {"type": "array", "items": record}, "strict": True}
    return _under(prompt, "json_schema", response_format={"type": "json_schema", "json_schema": schema})


def make_required(rng: random.Random, wording: Wording) -> Prompt:
    """One call where some call is required."""
    return _under(tool_one.make(rng, wording), "tool_required", tool_choice="required")


def make_named(rng: random.Random, wording: Wording) -> Prompt:
    """One call of the function that the request names."""
    prompt = tool_one.make(rng, wording)
    named = {"type": "function", "function": {"name": prompt.expected[0].name}}
    return _under(prompt, "tool_named", tool_choice=named)


def make_parallel(rng: random.Random, wording: Wording) -> Prompt:
    """Two calls where calls are required."""
    return _under(tool_two.make(rng, wording), "tool_parallel", tool_choice="required")


def make_loop(rng: random.Random, wording: Wording) -> Prompt:
    """A call, whose result the next reply tells."""
    prompt = tool_one.make(rng, wording)
    result = draw_result(rng, BY_NAME[prompt.expected[0].name])
    step = ToolStep(prompt.expected, (json.dumps(result),))
    return replace(prompt, kind="tool_loop", expected=list(result.values()), tool_steps=(step,), reply=None)


def _under(prompt: Prompt, kind: str, **fields: Any) -> Prompt:
    return replace(prompt, kind=kind, fields=fields)
