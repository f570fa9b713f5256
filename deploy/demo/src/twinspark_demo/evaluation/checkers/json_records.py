"""JSON: the records as an array of objects; the order of keys and spaces are free."""

import json
from collections.abc import Mapping, Sequence

from twinspark_demo.evaluation.reply import Reply


def is_right(expected: Sequence[Mapping[str, str | int]], reply: Reply) -> bool:
    """Whether the whole content is JSON of equal value. 1, 1.0 and true are three values, as in JSON's text."""
    try:
        found = json.loads(reply.content)
    except (ValueError, RecursionError):
        return False
    return json.dumps(found, sort_keys=True) == json.dumps(list(expected), sort_keys=True)
