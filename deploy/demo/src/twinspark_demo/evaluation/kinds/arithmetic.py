"""Sums, differences and products of two numbers of two digits."""

import operator
import random
from collections.abc import Callable, Mapping

from twinspark_demo.evaluation.prompt import Prompt, Wording, ask, wordings

WORDINGS = wordings(
    [
        "What is {a} {op} {b}?",
        "Calculate {a} {op} {b}.",
        "{a} {op} {b} = ?",
        "How much is {a} {op} {b}?",
        "Please compute {a} {op} {b}.",
        "Tell me what {a} {op} {b} is.",
        "Work out {a} {op} {b}.",
        "{a} {op} {b}",
    ],
    [
        "I am stuck on a sum, can you tell me how much {a} {op} {b} is?",
        "My homework says: what is {a} {op} {b}?",
        "Quick math check: {a} {op} {b} equals what?",
    ],
)
_OPERATIONS: Mapping[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "x": operator.mul}


def draw(rng: random.Random) -> tuple[dict[str, object], int]:
    """The places of a wording, and the result."""
    sign = rng.choice(list(_OPERATIONS))
    a, b = rng.randint(10, 99), rng.randint(10, 99)
    return {"a": a, "b": b, "op": sign}, _OPERATIONS[sign](a, b)


def make(rng: random.Random, wording: Wording) -> Prompt:
    """The reply's reasoning is free, so only the number is known."""
    values, result = draw(rng)
    return Prompt("arithmetic", ask(wording.fill(**values)), result, wording.held_out)
