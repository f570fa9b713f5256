"""No tool fits: some answer in words."""

from twinspark_demo.evaluation.reply import Reply


def is_right(expected: None, reply: Reply) -> bool:
    """Whether there is an answer, and nothing is called."""
    return not reply.calls and bool(reply.content.strip())
