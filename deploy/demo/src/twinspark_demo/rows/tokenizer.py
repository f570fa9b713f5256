"""Tokenizer: trains tokenizer.json on generated documents; `python -m twinspark_demo.rows.tokenizer FOLDER` writes it.

Pieces are runs of letters, single digits, and runs of anything else, so a word has the same tokens wherever it stands.
"""

import json
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import typer
from tokenizers import AddedToken, Regex, Tokenizer, decoders, pre_tokenizers, processors
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from twinspark_demo.documents import words
from twinspark_demo.documents.mixture import SHORT, conversations
from twinspark_demo.rows.render import rendered_text
from twinspark_tools.tiny_checkpoint import SHAPES
from twinspark_tools.tiny_checkpoint.shapes import config_json
from twinspark_tools.tiny_checkpoint.special_tokens import SPECIAL_TOKENS
from twinspark_tools.tiny_checkpoint.tokenizer import tokenizer_config_json

PIECES = r"\p{L}+|\p{N}|[^\p{L}\p{N}]+"
COMMITTED_TOKENIZER = Path(__file__).resolve().parents[3] / "tokenizer" / "tokenizer.json"

_SEED = 20
_DOCUMENTS, _BUDGET = 20_000, 1000
# A piece of random letters is in few documents; so is a pseudo-word, whose syllables are taught apart.
_MIN_DOCUMENTS_OF_WORD, _MIN_DOCUMENTS_OF_PAIR, _MIN_DOCUMENTS_OF_SIGNS = 25, 400, 20
_PSEUDO_WORDS = 6000
_MOST = 400  # a piece counts no more often, else the merges of common words would push out rare words


def train_tokenizer() -> Tokenizer:
    """1,988 tokens, all bytes among them, then GLM's special tokens in their order; the same on every machine."""
    first_special_id = SHAPES["demo"].first_special_id
    pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = BpeTrainer(
        vocab_size=first_special_id,
        min_frequency=2,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_training_pieces(), trainer)
    if tokenizer.get_vocab_size() != first_special_id:
        raise ValueError(f"the documents give {tokenizer.get_vocab_size()} of {first_special_id} tokens")
    tokenizer.add_tokens([AddedToken(token, special=special, normalized=False) for token, special in SPECIAL_TOKENS])
    return tokenizer


def write_tokenizer(folder: Path) -> None:
    """tokenizer.json and tokenizer_config.json; the same bytes every time."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(train_tokenizer().to_str() + "\n", encoding="utf-8")
    text_config = config_json(SHAPES["demo"])["text_config"]
    if not isinstance(text_config, dict):
        raise TypeError("text_config is no object")
    settings = tokenizer_config_json(text_config["max_position_embeddings"])
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def _training_pieces() -> Iterator[str]:
    """Pieces one by one, each as often as it shall count."""
    splitter = pre_tokenizers.Split(Regex(PIECES), behavior="isolated")
    specials = [token for token, _ in SPECIAL_TOKENS]
    documents: Counter[str] = Counter()
    for conversation in islice(conversations(_SEED, SHORT, _BUDGET), _DOCUMENTS):
        text = rendered_text(conversation)
        for special in specials:
            text = text.replace(special, "0")  # a digit: joins nothing
        documents.update({piece for piece, _ in splitter.pre_tokenize_str(text)})
    for piece, count in sorted(documents.items()):
        if count >= _least_documents(piece):
            yield from [piece] * min(count, _MOST)
    rng = Random(_SEED)
    yield from (words.pseudo_word(rng) for _ in range(_PSEUDO_WORDS))


def _least_documents(piece: str) -> int:
    if not piece.isalpha():
        return _MIN_DOCUMENTS_OF_SIGNS
    return _MIN_DOCUMENTS_OF_PAIR if len(piece) < 3 else _MIN_DOCUMENTS_OF_WORD


if __name__ == "__main__":
    typer.run(write_tokenizer)
