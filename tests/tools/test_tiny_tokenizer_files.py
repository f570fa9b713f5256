"""The tiny checkpoint's tokenizer: GLM's special tokens in GLM's order, digits split, decoding exact."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from twinspark_tools.tiny_checkpoint import SHAPES
from twinspark_tools.tiny_checkpoint.special_tokens import SPECIAL_TOKENS
from twinspark_tools.tiny_checkpoint.tokenizer import tokenizer_json

TOKENIZER = Tokenizer.from_str(tokenizer_json(SHAPES["tiny"]))


@given(st.text())
def test_decoding_gives_the_text_back(text: str) -> None:
    ids = TOKENIZER.encode(text, add_special_tokens=False).ids
    assert TOKENIZER.decode(ids, skip_special_tokens=False) == text


@pytest.mark.parametrize(
    "text", ["naïve 🙂 你好", "  two  spaces\n\n\tx", "a" * 300, "\x00\x7f\u200b", "<think>x</think>"]
)
def test_decoding_of_hard_texts_is_exact(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text).ids, skip_special_tokens=False) == text


def test_digits_are_one_token_each() -> None:
    assert TOKENIZER.encode("2026").tokens == ["2", "0", "2", "6"]


def test_special_tokens_follow_the_vocabulary_in_order() -> None:
    ids = [TOKENIZER.token_to_id(token) for token, _ in SPECIAL_TOKENS]
    assert ids == list(range(1476, 1512))
    for token, _ in SPECIAL_TOKENS:
        assert TOKENIZER.encode(f"a{token}b", add_special_tokens=False).tokens == ["a", token, "b"]


def test_decoding_without_special_tokens_keeps_the_markup() -> None:
    everything = "".join(token for token, _ in SPECIAL_TOKENS)
    kept = "".join(token for token, special in SPECIAL_TOKENS if not special)
    ids = TOKENIZER.encode(everything, add_special_tokens=False).ids
    assert TOKENIZER.decode(ids, skip_special_tokens=True) == kept
    assert "<think>" in kept
    assert "<|user|>" not in kept


def test_nothing_is_added_by_the_tokenizer_itself() -> None:
    assert TOKENIZER.encode("hi").ids == TOKENIZER.encode("hi", add_special_tokens=False).ids


def test_demo_shape_puts_special_tokens_from_row_1988() -> None:
    tokenizer = Tokenizer.from_str(tokenizer_json(SHAPES["demo"]))
    assert tokenizer.token_to_id("<|endoftext|>") == 1988
    assert tokenizer.get_vocab_size() == 2024


def test_transformers_loads_the_folder(tiny_folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_folder)
    assert len(tokenizer) == 1512
    assert tokenizer.decode(tokenizer.encode("Hello, world!")) == "Hello, world!"
