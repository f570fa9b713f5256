"""The checkpoint's tokenizer."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import decoders

from support.tiny_tokenizer import build_tokenizer, write_folder
from twinspark_gateway.prompt.chat_template import ChatTemplateError, load_chat_template
from twinspark_gateway.prompt.tokenizer import Tokenizer, TokenizerError, load_tokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    loaded = load_tokenizer(write_folder(tmp_path_factory.mktemp("tokenizer")))
    assert loaded is not None
    return loaded


@given(text=st.text())
def test_decoding_gives_the_encoded_text(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


@given(text=st.text(alphabet="<|user>think/ aé\n"))
def test_text_encoded_as_plain_holds_no_added_token_and_decodes_to_itself(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode_segments([(text, False)])
    assert tokenizer.decode(ids) == text
    assert all(token_id < 273 for token_id in ids)


@given(text=st.text(alphabet=st.characters(codec="utf-8", exclude_characters="<[")))
def test_text_without_markup_has_the_same_ids_by_either_way(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.encode_segments([(text, False)]) == tokenizer.encode(text)


def test_every_byte_has_a_token_of_that_byte(tokenizer: Tokenizer) -> None:
    assert sorted(tokenizer.token_bytes(token_id) for token_id in range(256)) == [bytes([i]) for i in range(256)]


def test_tokens_with_the_special_flag_are_known(tokenizer: Tokenizer) -> None:
    end, think = tokenizer.id_of("<|user|>"), tokenizer.id_of("<think>")
    assert end is not None
    assert think is not None
    assert tokenizer.is_special(end)
    assert not tokenizer.is_special(think)


def test_a_row_of_the_vocabulary_without_a_token_has_no_bytes(tokenizer: Tokenizer) -> None:
    assert tokenizer.token_bytes(300) == b""


def test_a_folder_without_a_tokenizer_gives_none(tmp_path: Path) -> None:
    assert load_tokenizer(tmp_path) is None


def test_a_bare_tokenizer_file_is_enough_and_has_no_template(tmp_path: Path) -> None:
    loaded = load_tokenizer(write_folder(tmp_path, template=False))
    assert loaded is not None
    assert loaded.chat_template is None


def test_a_template_inside_tokenizer_config_is_found(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, template=False)
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    loaded = load_tokenizer(folder)
    assert loaded is not None
    assert loaded.chat_template == "{{ messages }}"


def test_the_default_of_several_templates_is_taken_and_a_broken_file_is_named(tmp_path: Path) -> None:
    templates = [{"name": "tool_use", "template": "a"}, {"name": "default", "template": "b"}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": templates}))
    assert load_chat_template(tmp_path) == "b"
    (tmp_path / "tokenizer_config.json").write_text("{")
    with pytest.raises(ChatTemplateError, match=r"tokenizer_config\.json"):
        load_chat_template(tmp_path)
    (tmp_path / "chat_template.jinja").write_text("c")
    assert load_chat_template(tmp_path) == "c"


def test_a_tokenizer_that_is_not_byte_level_is_refused(tmp_path: Path) -> None:
    backend = build_tokenizer()
    backend.decoder = decoders.Metaspace()
    backend.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(TokenizerError, match="not ByteLevel"):
        load_tokenizer(tmp_path)
