"""Sums, differences and products of two numbers of two digits, sometimes of one, with signs or in words."""

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
        "The exercise on the blackboard is {a} {op} {b}, and I cannot solve it.",
        "Quick math check: {a} {op} {b} equals what?",
    ],
)
_OPERATIONS: Mapping[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "x": operator.mul}
_SPELLINGS: Mapping[str, tuple[str, ...]] = {"+": ("+", "plus"), "-": ("-", "minus"), "x": ("x", "*", "times")}
_SMALL_SHARE = 1 / 6
"""Of the numbers, how many have one digit."""


def draw(rng: random.Random) -> tuple[dict[str, object], int]:
    """The places of a wording, and the result."""
    sign = rng.choice(list(_OPERATIONS))
    a, b = (rng.randint(1, 9) if rng.random() < _SMALL_SHARE else rng.randint(10, 99) for _ in range(2))
    return {"a": a, "b": b, "op": rng.choice(_SPELLINGS[sign])}, _OPERATIONS[sign](a, b)


def make(rng: random.Random, wording: Wording) -> Prompt:
    """The reply's reasoning is free, so only the number is known."""
    values, result = draw(rng)
    return Prompt("arithmetic", ask(wording.fill(**values)), result, wording.held_out)
