"""Whether a text contains something as a whole: not as a part of a longer word or number."""

import re


def contains(text: str, wanted: str) -> bool:
    """Whether `wanted` stands in the text with no letter, digit or underscore right before or after it."""
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", text) is not None
