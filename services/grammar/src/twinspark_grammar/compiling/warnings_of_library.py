"""What xgrammar says on stderr while it compiles: it warns of what it ignores, and goes on."""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from twinspark_grammar.schema.enforcement import Unenforced

STDERR = 2
PLACE_IN_LIBRARY = re.compile(r"(?:\[[\d:]+\] )?/\S+\.(?:cc|h):\d+: (?:Warning: )?")
"""Time and source file in front of what xgrammar says."""
_WARNING = ": Warning: "
FOUND_BY_READING = (
    "oneOf with overlapping",
    "allOf with multiple",
    "combined with minLength/maxLength",
    "URI should either be",
    "multipleOf is not supported for type:number",
)
"""Said of what enforcement.py names itself, with its place."""
OF_PATTERNS = ("Lookahead assertion", "Anchor '", "Regex parsing warning")


@contextmanager
def collect_warnings() -> Iterator[list[Unenforced]]:
    """Redirect this process's stderr while open; the list is filled at the end. For a process of its own only."""
    found: list[Unenforced] = []
    with tempfile.TemporaryFile() as file:
        kept = os.dup(STDERR)
        os.dup2(file.fileno(), STDERR)
        try:
            yield found
        finally:
            os.dup2(kept, STDERR)
            os.close(kept)
            file.seek(0)
            found += read_warnings(file.read().decode(errors="replace"))


def read_warnings(text: str) -> list[Unenforced]:
    """Give one entry for each warning that says something new; it has no place, and sometimes no keyword."""
    lines = [PLACE_IN_LIBRARY.sub("", line) for line in text.splitlines() if _WARNING in line]
    new = [line for line in dict.fromkeys(lines) if not any(known in line for known in FOUND_BY_READING)]
    return [Unenforced(_keyword_of(line), "", line) for line in new]


def _keyword_of(line: str) -> str:
    if any(start in line for start in OF_PATTERNS):
        return "pattern"
    return "multipleOf" if "ignoring multipleOf" in line else ""
