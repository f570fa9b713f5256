"""Tool results: every value that the function returned."""

from collections.abc import Sequence

from twinspark_demo.evaluation.checkers.whole_words import contains
from twinspark_demo.evaluation.reply import Reply


def is_right(expected: Sequence[str | int], reply: Reply) -> bool:
    """Whether the content contains every value, and nothing is called."""
    return not reply.calls and all(contains(reply.content, str(value)) for value in expected)
