"""What is asked: enough wordings, fresh draws that follow from the seed, and expected answers that are right."""

import random
import re
from collections import Counter

import pytest

from twinspark_demo import knowledge
from twinspark_demo.evaluation import words
from twinspark_demo.evaluation.checkers import CHECKERS
from twinspark_demo.evaluation.drawing import draw_prompts, expand_kinds, kinds
from twinspark_demo.evaluation.filler import SAMPLE_SENTENCES, sample_text
from twinspark_demo.evaluation.kinds.calls import BY_NAME
from twinspark_demo.evaluation.kinds.needle import STATEMENTS
from twinspark_demo.evaluation.kinds.requests import COMMANDS, REQUESTS
from twinspark_demo.evaluation.kinds.tool_none import SMALL_TALK
from twinspark_demo.evaluation.prompt import Wording, wordings
from twinspark_demo.evaluation.reply import ParsedCall, Reply

KINDS = list(kinds())
SMALL = [kind for kind in KINDS if kind != "needle_8000"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_eight_wordings_of_which_three_are_held_out(kind: str) -> None:
    found = kinds()[kind].wordings
    assert len(set(found)) == len(found) >= 8
    assert sum(wording.held_out for wording in found) >= 3


def test_every_function_has_three_requests_and_statements_of_codes_have_eight() -> None:
    assert set(REQUESTS) == set(BY_NAME)
    assert all(len(found) >= 3 and any(wording.held_out for wording in found) for found in REQUESTS.values())
    assert set(COMMANDS) < set(BY_NAME)
    assert len(STATEMENTS) >= 8


def test_the_vocabulary_is_large_and_open() -> None:
    assert len(set(words.ENGLISH)) == len(words.ENGLISH) >= 1303
    rng = random.Random(1)
    drawn = [words.open_word(rng) for _ in range(3000)]
    shares = Counter("english" if word in words.ENGLISH else "other" for word in drawn)
    assert 800 < shares["english"] < 1200
    assert len(set(drawn)) > 1800
    codes = [words.code(rng) for _ in range(1000)]
    assert {len(code) for code in codes} == {4, 5, 6, 7, 8}
    assert all(not code.isdigit() and code in (code.lower(), code.upper()) for code in codes)


def test_words_that_are_a_part_of_another_are_drawn_again() -> None:
    drawn = iter(["abc", "xABCx", "b", "zz", "abc", "qq"])
    assert words.not_within_each_other(random.Random(0), lambda _: next(drawn), 3) == ["abc", "zz", "qq"]


@pytest.mark.parametrize("kind", SMALL)
def test_the_same_seed_asks_the_same_and_another_seed_something_else(kind: str) -> None:
    first = draw_prompts(kind, 20)
    assert draw_prompts(kind, 20) == first
    assert draw_prompts(kind, 20, seed=1) != first


@pytest.mark.parametrize("kind", ["copy", "json", "rename", "needle_1000"])
def test_kinds_with_an_open_vocabulary_never_ask_the_same_twice(kind: str) -> None:
    drawn = [prompt.messages[0]["content"] for seed in (1, 2) for prompt in draw_prompts(kind, 40, seed)]
    assert len(set(drawn)) == len(drawn)


@pytest.mark.parametrize("kind", SMALL)
def test_the_expected_reply_is_right_and_an_empty_one_is_not(kind: str) -> None:
    for prompt in draw_prompts(kind, 60):
        assert not CHECKERS[kind](prompt.expected, Reply(""))
        if prompt.reply is not None:
            parts = [part["function"] for part in prompt.reply.get("tool_calls", ())]
            calls = tuple(ParsedCall(part["name"], part["arguments"]) for part in parts)
            assert CHECKERS[kind](prompt.expected, Reply(prompt.reply["content"], calls))


def test_wordings_take_turns() -> None:
    prompts = draw_prompts("copy", 50)
    held_out = sum(prompt.held_out for prompt in prompts)
    assert 50 * 3 // 11 <= held_out <= 50 * 3 // 11 + 3


def test_no_place_of_a_wording_stays_open() -> None:
    for kind in SMALL:
        for prompt in draw_prompts(kind, 60):
            texts = (*(str(message["content"]) for message in prompt.messages if message["role"] == "user"),)
            for text in (*texts, *prompt.later_turns):
                assert "{" not in text and "}" not in text


def test_a_needle_is_among_33_codes_of_which_none_is_part_of_another() -> None:
    for prompt in draw_prompts("needle_100", 10):
        text = prompt.messages[0]["content"]
        codes = [prompt.expected["code"], *prompt.expected["others"]]
        assert len(codes) == 33
        assert all(text.count(code) == 1 for code in codes)


def test_filler_is_as_long_as_asked_and_the_longest_are_few() -> None:
    characters = len(sample_text()) / SAMPLE_SENTENCES
    sizes = {}
    for kind in ("needle_100", "needle_1000", "needle_8000"):
        # As if each character were a token.
        prompts = draw_prompts(kind, 50, tokens_per_sentence=characters)
        sizes[kind] = sum(len(prompt.messages[0]["content"]) for prompt in prompts) / len(prompts)
        assert len(prompts) == (20 if kind == "needle_8000" else 50)
    assert 850 < sizes["needle_1000"] - sizes["needle_100"] < 950
    assert 6800 < sizes["needle_8000"] - sizes["needle_1000"] < 7200


def test_tools_are_two_to_four_and_hold_what_is_needed() -> None:
    for kind in ("tool_one", "tool_two"):
        for prompt in draw_prompts(kind, 60):
            names = [tool["function"]["name"] for tool in prompt.tools]
            assert 2 <= len(set(names)) == len(names) <= 4
            assert {call.name for call in prompt.expected} <= set(names)


def test_where_no_tool_fits_the_asked_function_is_not_offered() -> None:
    for prompt in draw_prompts("tool_none", 100):
        text = prompt.messages[0]["content"]
        names = {tool["function"]["name"] for tool in prompt.tools}
        assert not ("weather" in text.lower() and "get_weather" in names)
        assert not ("note" in text.lower() and names & {"create_note", "send_message"})


def test_facts_are_those_that_the_model_knows() -> None:
    answers = {prompt.expected for prompt in draw_prompts("facts", 300)}
    opposites = {*knowledge.OPPOSITES.values(), *knowledge.OPPOSITES}
    known = {*knowledge.CAPITALS.values(), *opposites, *knowledge.COLOURS.values()}
    assert answers <= known | {str(amount) for amount in knowledge.AMOUNTS.values()}
    assert len(answers) > 60
    assert len(answers & (set(knowledge.OPPOSITES) - set(knowledge.COLOURS.values()))) > 10


def test_beside_tools_a_question_has_its_answer_and_a_request_for_a_missing_one_is_declined() -> None:
    known = {*knowledge.CAPITALS.values(), *knowledge.OPPOSITES.values(), *knowledge.OPPOSITES}
    known |= {*knowledge.COLOURS.values(), *map(str, knowledge.AMOUNTS.values())}
    answers = Counter[str]()
    for prompt in draw_prompts("tool_none", 200):
        text, expected = prompt.messages[0]["content"], prompt.expected
        if text in {wording.text for wording in SMALL_TALK}:
            answers["free"] += 1
            assert expected is None
        elif isinstance(expected, int):
            answers["number"] += 1
        else:
            answers["declined" if expected == "I have no tool for that." else "fact"] += 1
            assert expected == "I have no tool for that." or expected in known
    assert min(answers[sort] for sort in ("free", "number", "fact", "declined")) >= 10


def test_numbers_have_two_digits_or_now_and_then_one_and_signs_are_spelled_in_every_way() -> None:
    texts = [str(prompt.messages[0]["content"]) for prompt in draw_prompts("arithmetic", 300)]
    numbers = [int(number) for text in texts for number in re.findall(r"\d+", text)]
    assert len(numbers) == 600 and all(1 <= number <= 99 for number in numbers)
    assert 60 < sum(number < 10 for number in numbers) < 140
    signs = Counter(re.search(r"\d (\S+) \d", text)[1] for text in texts)  # type: ignore[index]
    assert set(signs) == {"+", "plus", "-", "minus", "x", "*", "times"} and min(signs.values()) > 15


def test_every_other_history_drops_reasoning_and_each_wording_is_asked_both_ways() -> None:
    prompts = draw_prompts("follow_up", 48)
    assert [prompt.sends_reasoning for prompt in prompts[:24]] == [True, False] * 12
    ways = {(prompt.later_turns[-1], prompt.sends_reasoning) for prompt in prompts}
    assert len(ways) == 48
    assert all(prompt.sends_reasoning for kind in SMALL if kind != "follow_up" for prompt in draw_prompts(kind, 4))


def test_kinds_are_chosen_by_name() -> None:
    assert expand_kinds("") == KINDS
    assert expand_kinds("json, copy") == ["copy", "json"]
    assert expand_kinds("needle") == ["needle_100", "needle_1000", "needle_8000"]
    with pytest.raises(ValueError, match="unknown kind poetry"):
        expand_kinds("copy,poetry")


def test_held_out_wordings_are_spread_among_the_usual() -> None:
    mixed = wordings(["a", "b", "c", "d"], ["x", "y"])
    assert mixed == (
        Wording("a"),
        Wording("b"),
        Wording("x", held_out=True),
        Wording("c"),
        Wording("d"),
        Wording("y", held_out=True),
    )
