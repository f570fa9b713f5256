"""Renaming: the program, character by character."""

import re

from twinspark_demo.evaluation.reply import Reply

_FENCED = re.compile(r"\A```[a-z]*\n(.*?)\n?```\Z", re.DOTALL)


def is_right(expected: str, reply: Reply) -> bool:
    """Whether the content equals but for space around it and one enclosing fence."""
    text = reply.content.strip()
    fenced = _FENCED.match(text)
    return (fenced[1].strip() if fenced else text) == expected
