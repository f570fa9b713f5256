"""The tokenizer as grammars see it: bytes of each id.

An added token (role markers, thinking, tool tags) stands for bytes that are no UTF-8, so that no text of a grammar
matches it and it can never be inside a JSON string; a grammar that wants one names it as a token.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tokenizers import Tokenizer

TOKENIZER_FILE = "tokenizer.json"
END_OF_THINKING = "</think>"
NO_UTF8 = b"\xff"
"""In front of an added token's spelling. Without any bytes xgrammar would not take the token even where it is named."""


class VocabularyError(Exception):
    """The folder's tokenizer cannot be served; the message says why."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """One checkpoint's tokenizer."""

    token_bytes: tuple[bytes, ...]
    """By id; empty for ids that are no token."""
    added: MappingProxyType[str, int]
    """Ids of the added tokens by their spelling."""
    token_ids: frozenset[int]
    """Ids that are tokens, added ones included."""
    digest: str
    """SHA-256 of tokenizer.json, in hex: part of every handle."""

    @property
    def end_of_thinking(self) -> int | None:
        """The id that ends a think block; None where the tokenizer has none."""
        return self.added.get(END_OF_THINKING)


def load_vocabulary(folder: Path) -> Vocabulary:
    """Read tokenizer.json. Raises VocabularyError."""
    try:
        content = (folder / TOKENIZER_FILE).read_bytes()
    except OSError as error:
        raise VocabularyError(f"{TOKENIZER_FILE} cannot be read: {error.strerror}") from error
    try:
        tokenizer = Tokenizer.from_buffer(content)
    except ValueError as error:
        raise VocabularyError(f"{TOKENIZER_FILE} is no tokenizer: {error}") from error
    if "ByteLevel" not in repr(tokenizer.decoder):
        raise VocabularyError(f"{TOKENIZER_FILE} is not a byte-level BPE tokenizer: its decoder is not ByteLevel")
    added = {token.content: token_id for token_id, token in tokenizer.get_added_tokens_decoder().items()}
    ids = tokenizer.get_vocab(with_added_tokens=True)
    token_bytes = [b""] * (max(ids.values(), default=-1) + 1)
    bytes_of = byte_of_character()
    for text, token_id in ids.items():
        token_bytes[token_id] = NO_UTF8 + text.encode() if text in added else bytes(bytes_of[char] for char in text)
    digest = hashlib.sha256(content).hexdigest()
    return Vocabulary(tuple(token_bytes), MappingProxyType(added), frozenset(ids.values()), digest)


def byte_of_character() -> dict[str, int]:
    """Map the characters that stand for bytes in a byte-level vocabulary to their bytes.

    The printable bytes of Latin-1 stand for themselves; the others, in order, are the characters from U+0100 on.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}
