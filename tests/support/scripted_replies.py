"""Scripted raw outputs: rows of data that say what a model writes and what a client must get, and how to tokenize them.

A row's `raw` is text in which spelled tokens are tokens; U+FDD0 inside a spelling makes ordinary text of it. `end` is
what ends the output (user, observation, endoftext; length: the request's limit; or the text of the token `stop_id`),
and `drop_bytes` takes so many tokens from the end. `request` has further fields; with `thinking` the output begins
inside the reasoning. Expected are `reasoning`, `content`, `calls` as [name, arguments] and `finish`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from support.scripts import encode
from support.tiny_tokenizer import MARKUP, SPECIAL, build_tokenizer
from twinspark_gateway.prompt.tokenizer import _byte_of_character

FOLDER = Path(__file__).parents[1] / "gateway" / "tools" / "scripted"
PLAIN = "\ufdd0"
ENDS = {"user": "<|user|>", "observation": "<|observation|>", "endoftext": "<|endoftext|>"}


@dataclass(frozen=True)
class ScriptedReply:
    """One row."""

    rule: str
    raw: str
    finish: str
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    content: str | None = None
    reasoning: str = ""
    thinking: bool = False
    end: str = "user"
    stop_id: str = ""
    drop_bytes: int = 0
    request: dict[str, Any] = field(default_factory=dict)

    def token_ids(self, *, cut: int | None = None, every_byte: bool = False) -> list[int]:
        """Give the output without its end. `cut`: a token boundary before that byte of the raw text, if it lies in
        ordinary text; every_byte: each byte of ordinary text is a token.
        """
        ids: list[int] = []
        position = 0
        for text, is_markup in segments(self.raw):
            raw = text.encode(errors="surrogatepass")
            inner = (cut or 0) - position
            if is_markup:
                ids += encode(text)
            elif every_byte:
                ids += [BYTE_IDS[byte] for byte in raw]
            elif 0 < inner < len(raw):
                ids += [*encode_bytes(raw[:inner]), *encode_bytes(raw[inner:])]
            else:
                ids += encode_bytes(raw)
            position += len(raw)
        return ids[: len(ids) - self.drop_bytes]

    @property
    def num_bytes(self) -> int:
        """Bytes of the raw text."""
        return sum(len(text.encode()) for text, _ in segments(self.raw))

    def end_token_ids(self) -> list[int]:
        """Give the token that ends the output; none where a limit does, or the stop id at the end of the raw text."""
        return encode(ENDS[self.end]) if self.end in ENDS and not self.stop_id else []


def segments(raw: str) -> list[tuple[str, bool]]:
    """Cut a raw text at its tokens: (text, whether it is one of them)."""
    found: list[tuple[str, bool]] = []
    rest = raw
    while rest:
        token = next((token for token in (*SPECIAL, *MARKUP) if rest.startswith(token)), None)
        if token is not None:
            found.append((token, True))
        elif found and not found[-1][1]:
            found[-1] = (found[-1][0] + rest[0], False)
        else:
            found.append((rest[0], False))
        rest = rest[len(token or rest[0]) :]
    return [(text.replace(PLAIN, ""), is_markup) for text, is_markup in found]


_VOCABULARY: dict[str, int] = build_tokenizer().get_vocab()
BYTE_IDS = {byte: _VOCABULARY[char] for char, byte in _byte_of_character().items()}


def encode_bytes(raw: bytes) -> list[int]:
    """Give ids of ordinary text that may begin or end inside a character, and may spell a token."""
    ids: list[int] = []
    plain = ""
    text = raw.decode(errors="surrogateescape")
    for char in text:
        if "\udc80" <= char <= "\udcff":
            ids += [*_encode_plain(plain), BYTE_IDS[ord(char) - 0xDC00]]
            plain = ""
        else:
            plain += char
    return [*ids, *_encode_plain(plain)]


def _encode_plain(text: str) -> list[int]:
    ids: list[int] = []
    for i, part in enumerate(text.split("<")):
        ids += ([BYTE_IDS[ord("<")]] if i else []) + (encode(part) if part else [])
    return ids


def load_rows() -> list[ScriptedReply]:
    """Give all rows."""
    rows = []
    for path in sorted(FOLDER.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").split("\n"):
            if line:
                rows.append(ScriptedReply(**json.loads(line)))
    return rows


@cache
def load_tools() -> list[dict[str, Any]]:
    """Give the tools that the rows offer, as a request has them."""
    tools: list[dict[str, Any]] = json.loads((FOLDER / "tools.json").read_text())
    return tools


def as_text(calls: Sequence[tuple[str, Any]]) -> list[tuple[str, str]]:
    """Give calls in a form in which 1, 1.0 and true, and orders of keys, differ."""
    return [
        (name, json.dumps(json.loads(arguments) if isinstance(arguments, str) else arguments))
        for name, arguments in calls
    ]
