"""Needles: the one code that was asked for, and no other of the text."""

from collections.abc import Mapping
from typing import Any

from twinspark_demo.evaluation.reply import Reply


def is_right(expected: Mapping[str, Any], reply: Reply) -> bool:
    """Whether the content holds `code` and none of `others`."""
    return expected["code"] in reply.content and not any(other in reply.content for other in expected["others"])
