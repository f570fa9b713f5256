"""The process of one check: reads {"schema", "text"} on its input, writes valid, violated or unchecked.

It reads no other document: a reference to one leaves the answer unchecked.
"""

import json
import resource
import sys
from typing import Any, NoReturn

import jsonschema_rs

_MOST_BYTES = 1 << 30


def _refuse(uri: str) -> NoReturn:
    raise LookupError(uri)


def check(schema: Any, text: str) -> str:
    """Say whether the text is a JSON value that fits the schema."""
    try:
        validator = jsonschema_rs.validator_for(schema, retriever=_refuse)
    except (ValueError, jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
        return "unchecked"
    try:
        value = json.loads(text)
    except ValueError:
        return "violated"
    try:
        return "valid" if validator.is_valid(value) else "violated"
    except ValueError:
        return "unchecked"


def main() -> None:
    """Answer one question."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    question = json.load(sys.stdin)
    sys.stdout.write(check(question["schema"], question["text"]))


if __name__ == "__main__":
    main()
