"""A grammar as its caller wrote it."""

import enum
import hashlib
from dataclasses import dataclass


class GrammarKind(enum.Enum):
    """How a source is to be read; the values are part of a handle and never change."""

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    REGEX = "regex"
    EBNF = "ebnf"
    CHOICE = "choice"
    STRUCTURAL_TAG = "structural_tag"
    TOOL_CALLS = "tool_calls"


@dataclass(frozen=True, slots=True)
class GrammarSource:
    """Kind and text."""

    kind: GrammarKind
    text: str

    def handle(self, tokenizer_digest: str) -> str:
        """Give the name of the compiled grammar: SHA-256 of tokenizer, kind and text, in hex."""
        content = "\0".join((tokenizer_digest, self.kind.value, self.text))
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
