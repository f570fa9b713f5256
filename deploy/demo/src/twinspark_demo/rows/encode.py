"""Encoding: conversations to token ids and the class of each token."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from twinspark_demo.conversation import Conversation
from twinspark_demo.rows.render import render


@dataclass(frozen=True, slots=True)
class Document:
    """One conversation as tokens."""

    ids: NDArray[np.int16]  # [T]
    classes: NDArray[np.uint8]  # [T] TokenClass


class Encoder:
    """Encodes many conversations at once: the tokenizer's cost is mostly that of a call."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    @classmethod
    def load(cls, path: Path) -> "Encoder":
        """The encoder of a tokenizer.json."""
        return cls(Tokenizer.from_file(str(path)))

    def encode(self, conversations: Sequence[Conversation]) -> list[Document]:
        """One document for each conversation.

        Segments are encoded one by one: their ends are special tokens, so no token would cross them.
        """
        rendered = [render(conversation) for conversation in conversations]
        texts = [text for segments in rendered for text, _ in segments]
        encodings = iter(self._tokenizer.encode_batch_fast(texts, add_special_tokens=False))
        documents = []
        for segments in rendered:
            ids: list[int] = []
            classes: list[int] = []
            for _, token_class in segments:
                segment_ids = next(encodings).ids
                ids += segment_ids
                classes += [token_class] * len(segment_ids)
            documents.append(Document(np.array(ids, dtype=np.int16), np.array(classes, dtype=np.uint8)))
        return documents
