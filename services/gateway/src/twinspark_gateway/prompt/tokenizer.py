"""The checkpoint's byte-level BPE tokenizer: text to ids, ids to bytes.

Never AutoTokenizer: it imports torch where torch is installed.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer as BackendTokenizer
from transformers import PreTrainedTokenizerFast

from twinspark_gateway.prompt.chat_template import load_chat_template
from twinspark_gateway.prompt.reasoning import ThinkTokens
from twinspark_gateway.tools.tags import ToolTag

TOKENIZER_FILE = "tokenizer.json"


class TokenizerError(Exception):
    """The folder's tokenizer cannot be served; the message says why."""


def _byte_of_character() -> dict[str, int]:
    """Map the printable characters that stand for bytes in a byte-level vocabulary to their bytes.

    The printable bytes of Latin-1 stand for themselves; the others, in order, are the characters from U+0100 on.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    table = {chr(byte): byte for byte in printable}
    return table | {chr(0x100 + i): byte for i, byte in enumerate(others)}


class Tokenizer:
    """One checkpoint's tokenizer. Stateless after construction: any thread may call it."""

    def __init__(self, pretrained: PreTrainedTokenizerFast, chat_template: str | None) -> None:
        self._backend: BackendTokenizer = pretrained.backend_tokenizer
        if "ByteLevel" not in repr(self._backend.decoder):
            raise TokenizerError("tokenizer.json is not a byte-level BPE tokenizer: its decoder is not ByteLevel")
        self._bytes = _byte_of_character()
        added = self._backend.get_added_tokens_decoder()
        self._added = {int(token_id): str(token.content) for token_id, token in added.items()}
        self._special = frozenset(int(token_id) for token_id, token in added.items() if token.special)
        longest_first = sorted(self._added.values(), key=len, reverse=True)
        self._markup = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None
        self._id_of_markup = {text: token_id for token_id, text in self._added.items()}
        self.chat_template = chat_template

    @property
    def markup(self) -> re.Pattern[str] | None:
        """Matches the text of every added token, longest first; None where there are none."""
        return self._markup

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Give the ids of the text; text that spells an added token becomes that token."""
        # Without offsets, which nobody reads here: four times as fast for a long text.
        encodings = self._backend.encode_batch_fast([text], add_special_tokens=add_special_tokens)
        ids: list[int] = encodings[0].ids
        return ids

    def encode_segments(self, segments: Iterable[tuple[str, bool]]) -> list[int]:
        """Give the ids of (text, is_markup) segments: only those marked as markup become added tokens."""
        ids: list[int] = []
        for text, is_markup in segments:
            if is_markup:
                ids.append(self._id_of_markup[text])
            else:
                ids.extend(self._encode_plain(text))
        return ids

    def _encode_plain(self, text: str) -> list[int]:
        """Encode past the added tokens, with the normalizer, pre-tokenizer and model of the same tokenizer."""
        normalizer, splitter, model = self._backend.normalizer, self._backend.pre_tokenizer, self._backend.model
        if normalizer is not None:
            text = normalizer.normalize_str(text)
        words = [word for word, _ in splitter.pre_tokenize_str(text)] if splitter is not None else [text]
        return [token.id for word in words for token in model.tokenize(word)]

    def token_bytes(self, token_id: int) -> bytes:
        """Give the bytes that a token stands for; a row of the vocabulary without a token has none."""
        if token_id in self._added:
            return self._added[token_id].encode()
        token: str | None = self._backend.id_to_token(token_id)
        if token is None:
            return b""
        return bytes(self._bytes[char] for char in token)

    def is_special(self, token_id: int) -> bool:
        """Say whether the token carries the special flag, so that it has no text in a reply."""
        return token_id in self._special

    def id_of(self, text: str) -> int | None:
        """Give the id of the added token that is spelled like this, or None."""
        return self._id_of_markup.get(text)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Give the text of the ids, special tokens included; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(map(self.token_bytes, token_ids)).decode(errors="replace")

    def think_tokens(self) -> ThinkTokens | None:
        """Give the ids of the reasoning markup, or None where the tokenizer lacks one of the two."""
        opening, closing = self.id_of("<think>"), self.id_of("</think>")
        return ThinkTokens(opening, closing) if opening is not None and closing is not None else None

    def tool_tags(self) -> dict[int, ToolTag] | None:
        """Give the markup of tool calls by id, or None where the tokenizer lacks one of the six."""
        tags = {self._id_of_markup[tag.value]: tag for tag in ToolTag if tag.value in self._id_of_markup}
        return tags if len(tags) == len(ToolTag) else None


def load_tokenizer(folder: Path) -> Tokenizer | None:
    """Read the folder's tokenizer; None where it has no tokenizer.json. Raises TokenizerError."""
    if not (folder / TOKENIZER_FILE).is_file():
        return None
    # Not from_pretrained: it parses the file a second time in Python, at 70 MB for a vocabulary of 150,000.
    pretrained = PreTrainedTokenizerFast(tokenizer_file=str(folder / TOKENIZER_FILE))
    return Tokenizer(pretrained, load_chat_template(folder))
