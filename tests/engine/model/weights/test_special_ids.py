"""Ids that a folder declares: ends of output, and rows that no token has."""

import json
from pathlib import Path

import pytest

from twinspark_engine.model.checkpoint_error import CheckpointError
from twinspark_engine.model.weights import eos_token_ids, masked_token_ids

TOKENIZER = {
    "model": {"vocab": {"a": 0, "b": 1}},
    "added_tokens": [{"id": 2, "content": "<x>"}, {"id": 4, "content": "<y>"}],
}


def write(folder: Path, **files: object) -> Path:
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


def test_generation_config_wins(tmp_path: Path) -> None:
    write(tmp_path, config={"text_config": {"eos_token_id": 5}}, generation_config={"eos_token_id": [1, 2]})
    assert eos_token_ids(tmp_path) == (1, 2)


@pytest.mark.parametrize(
    ("config", "ids"),
    [
        ({"text_config": {"eos_token_id": 5}}, (5,)),
        ({"text_config": {"eos_token_id": None}, "eos_token_id": [6, 7]}, (6, 7)),
        ({"text_config": {}}, ()),
    ],
)
def test_config_is_the_second_source(tmp_path: Path, config: object, ids: tuple[int, ...]) -> None:
    assert eos_token_ids(write(tmp_path, config=config)) == ids
    assert eos_token_ids(write(tmp_path, config=config, generation_config={"temperature": 1.0})) == ids


@pytest.mark.parametrize("value", ["</s>", [1, "x"], True, -1])
def test_ids_that_are_no_ids_are_refused(tmp_path: Path, value: object) -> None:
    write(tmp_path, config={}, generation_config={"eos_token_id": value})
    with pytest.raises(CheckpointError, match=r"generation_config\.json: eos_token_id is"):
        eos_token_ids(tmp_path)


def test_rows_past_the_last_added_token_are_masked_with_a_template(tmp_path: Path) -> None:
    write(tmp_path, tokenizer=TOKENIZER)
    assert masked_token_ids(tmp_path, 8) == frozenset()
    (tmp_path / "chat_template.jinja").write_text("x")
    assert masked_token_ids(tmp_path, 8) == {5, 6, 7}


def test_template_inside_the_tokenizer_config_counts(tmp_path: Path) -> None:
    write(tmp_path, tokenizer=TOKENIZER, tokenizer_config={"chat_template": "x"})
    assert masked_token_ids(tmp_path, 8) == {5, 6, 7}


def test_without_tokenizer_nothing_is_masked(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text("x")
    assert masked_token_ids(tmp_path, 8) == frozenset()


def test_the_assistant_marker_is_masked_by_its_text(tmp_path: Path) -> None:
    added = [{"id": 2, "content": "<|user|>"}, {"id": 3, "content": "<|assistant|>"}]
    write(tmp_path, tokenizer={**TOKENIZER, "added_tokens": added})
    (tmp_path / "chat_template.jinja").write_text("x")
    assert masked_token_ids(tmp_path, 5) == {3, 4}
