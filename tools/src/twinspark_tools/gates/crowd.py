"""The requests of the load: mixed lengths and ways to draw, some of which leave early. The same for every run."""

import random
from dataclasses import dataclass

from twinspark_tools.gates.prompts import draw_prompt
from twinspark_tools.gates.server import Ask, ServerInfo

NUM_VISITS = 64
MOST_PROMPT_TOKENS = 300
MOST_OUTPUT_TOKENS = 32
EDGES = ((1, MOST_OUTPUT_TOKENS), (MOST_PROMPT_TOKENS, MOST_OUTPUT_TOKENS), (MOST_PROMPT_TOKENS, 1), (256, 2), (64, 1))
"""Prompt and output tokens of the first visits: the shortest, the longest, and lengths that fill a block or a cell."""
SAMPLING = (
    {"temperature": 0},
    {"temperature": 0.8, "top_p": 0.9},
    {"temperature": 1, "top_k": 50, "frequency_penalty": 0.5},
    {"temperature": 0, "frequency_penalty": 1.8, "priority": "background"},
    {"temperature": 1.2, "min_p": 0.02, "repetition_penalty": 1.1},
)
LEAVES_EVERY = 4
"""One visit in so many leaves; every other of these before its turn has come."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One streamed request of the load."""

    ask: Ask
    num_events: int | None = None
    """Events after which the client leaves; None: it stays. 0: it leaves while it waits for a slot."""


def build_crowd(info: ServerInfo) -> list[Visit]:
    """All visits in the order in which they arrive: those that leave before their turn come last, so that they wait."""
    source = random.Random(NUM_VISITS)
    visits = []
    for number in range(NUM_VISITS):
        drawn = (source.randint(1, MOST_PROMPT_TOKENS), source.randint(1, MOST_OUTPUT_TOKENS))
        num_prompt_tokens, max_tokens = EDGES[number] if number < len(EDGES) else drawn
        leaves = number % LEAVES_EVERY == LEAVES_EVERY - 1 and number >= len(EDGES)
        if leaves:
            max_tokens = MOST_OUTPUT_TOKENS
        prompt = draw_prompt(info, f"load {number}", num_prompt_tokens)
        ask = Ask(prompt, max_tokens, {**SAMPLING[source.randrange(len(SAMPLING))], "seed": number})
        num_events = (number // LEAVES_EVERY % 2) * source.randint(1, MOST_OUTPUT_TOKENS // 2) if leaves else None
        visits.append(Visit(ask, num_events))
    return sorted(visits, key=lambda visit: visit.num_events == 0)
