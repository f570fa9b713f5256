"""Whether a text contains something as a whole: not as a part of a longer word or number."""

import re


def contains(text: str, wanted: str) -> bool:
    """Whether `wanted` stands in the text as a whole.

    No letter, digit, underscore or minus sign is right before it; no letter, digit, underscore or further decimals
    right after it.
    """
    return re.search(rf"(?<![\w-])(?<!\d[.,:]){re.escape(wanted)}(?!\w|[.,:]\d)", text) is not None
