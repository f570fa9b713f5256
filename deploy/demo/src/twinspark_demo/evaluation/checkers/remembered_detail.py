"""Follow-up: the detail that was told three turns before."""

from twinspark_demo.evaluation.checkers.whole_words import contains
from twinspark_demo.evaluation.reply import Reply


def is_right(expected: str, reply: Reply) -> bool:
    """Whether the content contains the detail."""
    return contains(reply.content, expected)
