"""Copying: the text, character by character."""

from twinspark_demo.evaluation.reply import Reply


def is_right(expected: str, reply: Reply) -> bool:
    """Whether the content equals but for space around it."""
    return reply.content.strip() == expected
