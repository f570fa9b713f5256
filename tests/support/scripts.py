"""Scripts for the fake engine, written as text."""

from collections.abc import Callable, Sequence

from support.tiny_tokenizer import build_tokenizer
from twinspark.engine.v1 import engine_pb2 as pb

_TOKENIZER = build_tokenizer()
USER = 277


def encode(text: str) -> list[int]:
    """Give the ids of a text; spelled tokens become tokens."""
    ids: list[int] = _TOKENIZER.encode(text, add_special_tokens=False).ids
    return ids


def say(text: str) -> Callable[[pb.GenerateRequest], Sequence[int]]:
    """Answer every request with this text; then the output ends with the user's marker."""
    ids = [*encode(text), USER]
    return lambda request: ids
