"""Counting up or down between two numbers under 100."""

import random

from twinspark_demo.evaluation.prompt import Prompt, Wording, ask, content, wordings

WORDINGS = wordings(
    [
        "Count from {a} to {b}.",
        "Count {direction} from {a} to {b}.",
        "Please count from {a} {direction} to {b}.",
        "Write the numbers from {a} to {b}.",
        "List all numbers from {a} to {b}.",
        "Can you count from {a} to {b}?",
        "Give me the numbers from {a} {direction} to {b}.",
        "Start at {a} and count {direction} to {b}.",
    ],
    [
        "Show me that you can count: begin with {a} and go {direction} to {b}.",
        "My parrot dances whenever somebody counts {direction} from {a} to {b}, so please do.",
        "Recite the numbers {direction} from {a} to {b}, please.",
    ],
)
MOST_NUMBERS = 20


def draw(rng: random.Random, most: int = MOST_NUMBERS) -> tuple[dict[str, object], list[int]]:
    """The places of a wording, and 3 to `most` numbers."""
    length = rng.randint(3, most)
    low = rng.randint(0, 100 - length)
    numbers = list(range(low, low + length))
    direction = rng.choice(("up", "down"))
    if direction == "down":
        numbers.reverse()
    return {"a": numbers[0], "b": numbers[-1], "direction": direction}, numbers


def make(rng: random.Random, wording: Wording) -> Prompt:
    """One count."""
    values, numbers = draw(rng)
    reply = content(", ".join(map(str, numbers)))
    return Prompt("counting", ask(wording.fill(**values)), numbers, wording.held_out, reply=reply)
