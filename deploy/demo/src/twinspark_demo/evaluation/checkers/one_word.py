"""Facts: the word or number alone."""

from twinspark_demo.evaluation.reply import Reply


def is_right(expected: str, reply: Reply) -> bool:
    """Whether the content equals but for case, space around it and a final dot."""
    return reply.content.strip().removesuffix(".").casefold() == expected.casefold()
