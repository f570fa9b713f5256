"""Counting: the integers in order."""

import re
from collections.abc import Sequence

from twinspark_demo.evaluation.reply import Reply


def is_right(expected: Sequence[int], reply: Reply) -> bool:
    """Whether the integers in the content are these, in this order."""
    return [int(number) for number in re.findall(r"-?\d+", reply.content)] == list(expected)
