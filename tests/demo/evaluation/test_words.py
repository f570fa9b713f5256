"""The list of words, and the places that not every word may take."""

import builtins
import keyword
import random
import re
from importlib import resources

import pytest

from twinspark_demo.evaluation import filler, words
from twinspark_demo.evaluation.drawing import draw_prompts
from twinspark_demo.evaluation.kinds import needle, renaming
from twinspark_demo.evaluation.prompt import Wording

TYPICAL = {"the", "and", "what", "please", "because", "server", "restaurant", "weather", "things", "hello", "repeat"}
TYPICAL |= {"code", "convert", "json", "was", "writing", "written", "longer", "useful", "seven"}


def test_each_paragraph_is_sorted_and_no_word_stands_twice() -> None:
    text = resources.files("twinspark_demo.evaluation").joinpath("words.txt").read_text(encoding="utf-8")
    paragraphs = [paragraph.split() for paragraph in text.split("\n\n")]
    assert [list(words.NOUNS), list(words.CONTENT), list(words.FUNCTION)] == paragraphs
    assert all(paragraph == sorted(paragraph) for paragraph in paragraphs)
    every = [word for paragraph in paragraphs for word in paragraph]
    assert len(set(every)) == len(every)
    assert all(re.fullmatch("[a-z]+", word) for word in every)


def test_there_are_1300_words_of_every_sort() -> None:
    assert len(words.ENGLISH) >= 1300
    assert len(words.NOUNS) >= 603 and len(words.CONTENT) >= 400 and len(words.FUNCTION) >= 150
    assert set(words.ENGLISH) >= TYPICAL
    assert not set(words.NOUNS) & {"the", "and", "what", "please", "because"}


def test_texts_records_and_variables_hold_words_of_every_sort() -> None:
    for kind in ("copy", "json", "rename", "needle_100"):
        said = set[str]()
        for prompt in draw_prompts(kind, 60):
            said |= set(re.findall(r"[a-z]+", str(prompt.messages[0]["content"]).lower()))
        for sort in (words.CONTENT, words.FUNCTION):
            assert len(said & set(sort)) >= 25, kind


def test_values_in_the_middle_of_a_sentence_are_no_function_words() -> None:
    function = set(words.FUNCTION)
    rng = random.Random(1)
    assert not function & {words.name(rng).lower() for _ in range(3000)}
    for prompt in draw_prompts("tool_one", 200):
        for key, value in prompt.expected[0].arguments.items():
            assert key == "text" or not function & set(str(value).lower().split())
    assert not function & {prompt.expected.lower() for prompt in draw_prompts("follow_up", 200)}


def test_a_variable_is_nothing_that_python_knows() -> None:
    lengths = set[int]()
    for prompt in draw_prompts("rename", 120):
        variables = set(re.findall(r"^(\w+) = ", prompt.expected, re.MULTILINE))
        lengths |= {len(variable) for variable in variables}
        assert not variables & {*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "i"}
    assert 1 in lengths and max(lengths) > 12


@pytest.mark.parametrize("wording", renaming.WORDINGS)
def test_no_variable_is_a_word_of_its_own_request(wording: Wording) -> None:
    rng = random.Random(3)
    told = set(re.findall("[a-z]+", wording.text.lower()))
    for _ in range(300):
        assert not told & set(re.findall(r"^(\w+) = ", renaming.make(rng, wording).expected, re.MULTILINE))


def test_a_name_with_a_code_is_no_word_of_filler_or_of_what_is_told_and_asked() -> None:
    fixed = set(filler.FIXED_WORDS)
    assert {"nobody", "saw", "how", "across"} <= fixed
    told = {word for text in (*needle.WORDINGS, *needle.STATEMENTS) for word in re.findall("[a-z]+", text.text.lower())}
    rng = random.Random(2)
    for _ in range(4000):
        name = words.any_name(rng, needle._TAKEN)
        assert len(name) >= 3 and name.istitle()
        assert name.lower() not in fixed | told


def test_a_text_of_a_record_is_no_value_of_json_and_no_field() -> None:
    texts = [value for prompt in draw_prompts("json", 200) for record in prompt.expected for value in record.values()]
    assert not {"true", "false", "null", "age", "city", "name"} & {str(value) for value in texts}
    assert any(" " in str(value) for value in texts)
