"""Arithmetic: the last integer of the answer."""

import re

from twinspark_demo.evaluation.reply import Reply


def is_right(expected: int, reply: Reply) -> bool:
    """Whether the last integer in the content equals; no integer is wrong."""
    found = re.findall(r"-?\d+", reply.content)
    return bool(found) and int(found[-1]) == expected
