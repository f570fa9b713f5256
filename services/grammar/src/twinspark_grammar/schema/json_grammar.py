"""A JSON schema as a grammar in EBNF: xgrammar's own, with one flaw mended.

It lets a string whose length is bounded hold raw control characters, which is no JSON. A pattern in place of the length
would not, but costs milliseconds a mask with a large vocabulary, where counted characters cost microseconds.
"""

import re

from xgrammar import Grammar

MAX_BLANKS = 32
"""Blanks in a row between the parts of JSON."""
_COUNTED_CHARACTER = re.compile(r'^(\w+ ::= \(\()\[\^\\"\\\\\\r\\n\]\)\)$', re.MULTILINE)
"""The rule of one such character, as xgrammar prints it: anything but quote, backslash and line ends."""
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|.)", re.DOTALL)
"""xgrammar prints two digits behind `\\x`, and reads on as long as there are any; behind `\\u` it reads four."""


def json_grammar(schema: str) -> str:
    """Give the grammar of a schema's text; the root rule is `root`. Raises RuntimeError for what is no schema."""
    grammar = str(Grammar.from_json_schema(schema, strict_mode=True, max_whitespace_cnt=MAX_BLANKS))
    mended = _COUNTED_CHARACTER.sub(r'\1[^\\0-\\x1f\\"\\\\]))', grammar)
    return _ESCAPE.sub(lambda found: f"\\u00{found[1]}" if found[1] else found[0], mended)
