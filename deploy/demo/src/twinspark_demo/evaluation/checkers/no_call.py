"""No tool fits: the answer in words, where one is known; else some answer."""

from twinspark_demo.evaluation.checkers import last_number, one_word
from twinspark_demo.evaluation.reply import Reply


def is_right(expected: str | int | None, reply: Reply) -> bool:
    """Whether nothing is called and the content is right: a number or a sentence; None: anything that is said."""
    if reply.calls or not reply.content.strip():
        return False
    if expected is None:
        return True
    if isinstance(expected, int):
        return last_number.is_right(expected, reply)
    return one_word.is_right(expected.removesuffix("."), reply)
