"""The demo's tokenizer: GLM's form and special tokens, one way to write a word, the program's file."""

import json
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from twinspark_demo.documents import words
from twinspark_demo.documents.mixture import SHORT, conversations
from twinspark_demo.rows.render import rendered_text
from twinspark_demo.rows.tokenizer import COMMITTED_TOKENIZER, write_tokenizer
from twinspark_tools.tiny_checkpoint.special_tokens import SPECIAL_TOKENS

TOKENIZER = Tokenizer.from_file(str(COMMITTED_TOKENIZER))


def ids_of(text: str) -> list[int]:
    return list(TOKENIZER.encode(text, add_special_tokens=False).ids)


@pytest.mark.slow
def test_the_program_writes_the_committed_files(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / name).read_bytes() == (COMMITTED_TOKENIZER.parent / name).read_bytes(), name


def test_special_tokens_take_the_rows_from_1988_in_order_and_keep_their_flags() -> None:
    added = json.loads(COMMITTED_TOKENIZER.read_text("utf-8"))["added_tokens"]
    assert [(entry["id"], entry["content"], entry["special"]) for entry in added] == [
        (1988 + index, token, special) for index, (token, special) in enumerate(SPECIAL_TOKENS)
    ]
    assert TOKENIZER.get_vocab_size() == 2024
    assert TOKENIZER.get_vocab_size(with_added_tokens=False) == 1988
    for index, (token, _) in enumerate(SPECIAL_TOKENS):
        assert ids_of(f"a{token}b")[1] == 1988 + index


@given(st.text())
def test_decoding_gives_the_text_back(text: str) -> None:
    assert TOKENIZER.decode(ids_of(text), skip_special_tokens=False) == text


def test_generated_documents_are_decoded_exactly() -> None:
    for conversation in islice(conversations(5, SHORT, 1000), 300):
        text = rendered_text(conversation)
        assert TOKENIZER.decode(ids_of(text), skip_special_tokens=False) == text


def test_every_byte_and_every_digit_is_a_token() -> None:
    vocabulary = TOKENIZER.get_vocab()
    assert set(pre_tokenizers.ByteLevel.alphabet()) <= set(vocabulary)
    assert ids_of("20264") == [ids_of(digit)[0] for digit in "20264"]
    assert all(sum(mark.isdigit() for mark in token) == 0 for token in vocabulary if len(token) > 1)


def test_a_word_has_the_same_tokens_wherever_it_stands() -> None:
    rng = Random(6)
    around = ("{}", " {}", "\n    {}", '"{}"', "x = {}(", "7{}2", "<arg_value>{}</arg_value>", "-- {}, it", "\t{}.")
    for word in (words.english(rng), words.pseudo_word(rng), words.name(rng), "café"):
        alone = ids_of(word)
        for frame in around:
            before, after = frame.split("{}")
            assert ids_of(frame.format(word)) == ids_of(before) + alone + ids_of(after)


def test_no_token_holds_letters_and_anything_else() -> None:
    for index in range(1988):
        text = TOKENIZER.decode([index])
        assert "\ufffd" in text or text.isalpha() or not any(mark.isalpha() for mark in text), text


def test_codes_are_spelled_and_common_words_are_not() -> None:
    rng = Random(7)
    codes = [words.code(rng) for _ in range(2000)]
    assert sum(len(ids_of(code)) for code in codes) > 0.92 * sum(map(len, codes))
    common = ("What", "the", "weather", "variable", "name", "people", "code", "Repeat", "is", "array", "of", "objects")
    assert [word for word in common if len(ids_of(word)) > 1] == []
    english = [len(ids_of(word)) for word in words.ENGLISH]
    assert sum(english) < 2.4 * len(english)


def test_frequent_signs_are_one_token() -> None:
    for signs in ('", "', '"}, {"', '": "', '": ', "\n    ", '"}]', ", ", " = "):
        assert len(ids_of(signs)) == 1, signs


def test_transformers_loads_the_folder() -> None:
    tokenizer = PreTrainedTokenizerFast.from_pretrained(COMMITTED_TOKENIZER.parent)
    assert len(tokenizer) == 2024
    assert tokenizer.pad_token_id == tokenizer.eos_token_id == 1988
    assert tokenizer.encode("Hello, world!") == ids_of("Hello, world!")
