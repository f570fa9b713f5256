"""The grammar service alone with a vocabulary of GLM's size: what clients ask for is served, and numbers come out."""

import json
import subprocess
import sys

import pytest
from tokenizers import Tokenizer

from twinspark_grammar.vocabulary import byte_of_character
from twinspark_tools.bench.masks.cases import build_cases
from twinspark_tools.bench.masks.large_tokenizer import NUM_TOKENS, large_tokenizer_json

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_every_grammar_is_taken_and_measured_with_the_large_vocabulary() -> None:
    command = [sys.executable, "-m", "twinspark_tools.bench.masks", "--rows", "8"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    report = json.loads(ended.stdout)
    assert report["tokens"] == NUM_TOKENS
    assert [case["case"] for case in report["cases"]] == [case.name for case in build_cases()]
    assert min(value for case in report["cases"] for value in case["window_us"].values()) > 0
    assert min(report["resident_bytes"]["idle"].values()) > 0
    for case in report["cases"]:
        assert f"\n{case['case']} " in ended.stderr


def test_the_generated_tokenizer_has_every_byte_and_gives_texts_back() -> None:
    tokenizer = Tokenizer.from_str(large_tokenizer_json())
    vocabulary = tokenizer.get_vocab(with_added_tokens=False)
    assert set(byte_of_character()) <= set(vocabulary)
    text = 'The river, {"name": "Löwe", "age": 31}\n\t漢字 привет <tool_call>'
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert tokenizer.decode(ids, skip_special_tokens=False) == text
    assert len(ids) < len(text.encode())
