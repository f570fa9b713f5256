"""The tokenizer as grammars see it."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models

from support.grammar_texts import DEMO, Grammars
from twinspark_grammar.vocabulary import NO_UTF8, VocabularyError, load_vocabulary


def test_each_id_stands_for_the_bytes_that_the_tokenizer_decodes(grammars: Grammars) -> None:
    vocabulary = grammars.vocabulary
    for text in ("Plain words, 123.", "naïve 漢字 \U0001f600\n\t", '{"a": [1]}'):
        ids = grammars.encode(text)
        assert b"".join(vocabulary.token_bytes[i] for i in ids).decode() == text


def test_added_tokens_are_no_utf8_and_nothing_else_is_spelled_like_them(grammars: Grammars) -> None:
    vocabulary = grammars.vocabulary
    assert {"<tool_call>", "</think>", "<|user|>"} <= set(vocabulary.added)
    for text, token_id in vocabulary.added.items():
        assert vocabulary.token_bytes[token_id] == NO_UTF8 + text.encode()
        with pytest.raises(UnicodeDecodeError):
            vocabulary.token_bytes[token_id].decode()
    assert vocabulary.end_of_thinking == vocabulary.added["</think>"]
    assert len(vocabulary.token_ids) == grammars.tokenizer.get_vocab_size()


def test_the_digest_is_that_of_the_file(tmp_path: Path) -> None:
    content = (DEMO / "tokenizer.json").read_text()
    (tmp_path / "tokenizer.json").write_text(content)
    assert load_vocabulary(tmp_path).digest == load_vocabulary(DEMO).digest
    (tmp_path / "tokenizer.json").write_text(content + "\n")
    assert load_vocabulary(tmp_path).digest != load_vocabulary(DEMO).digest


def test_a_tokenizer_of_another_kind_is_refused(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel(vocab={"a": 0}, unk_token="a"))
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(VocabularyError, match="its decoder is not ByteLevel"):
        load_vocabulary(tmp_path)
