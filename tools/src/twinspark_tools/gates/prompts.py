"""Prompts of the gates: token ids that are ordinary in every vocabulary that is served, the same in every run."""

import random

from twinspark_tools.bench.measures import FIRST_ID, LAST_ID
from twinspark_tools.gates.server import ServerInfo


def draw_prompt(info: ServerInfo, name: str, length: int) -> list[int]:
    """`length` ids; another name, other ids, and a longer prompt of one name begins with the shorter ones."""
    source = random.Random(name)
    last = min(LAST_ID, info.vocabulary_size)
    return [source.randrange(min(FIRST_ID, last // 2), last) for _ in range(length)]
