"""Values of calls and results: of the right types, mostly new words, readable from the request."""

import re
from collections import Counter
from random import Random

import pytest

from twinspark_demo.documents import tool_values
from twinspark_demo.knowledge import FUNCTIONS, Function

every_function = pytest.mark.parametrize("function", FUNCTIONS, ids=[function.name for function in FUNCTIONS])
NUMBERS = ("0", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
ENDS = {"please", "thanks", "thank", "also", "then", "now"}
JOINTS = {"and", "for", "in", "to", "at", "into", "from", "on"}


def clock(text: str) -> tuple[int, int]:
    """Hour and minute of a time, read in another way than it was written."""
    hour_shift = 12 if text.endswith("pm") else 0
    text = re.sub(r" ?[ap]m$| o'clock$", "", text)
    if match := re.fullmatch(r"(half|quarter|\d+) (?:minutes )?past (\d+)", text):
        minute = {"half": 30, "quarter": 15}.get(match[1])
        return int(match[2]), int(match[1]) if minute is None else minute
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    hour, minute = numbers[0], numbers[1] if len(numbers) > 1 else 0
    return hour % 12 + hour_shift if hour_shift else hour, minute


@every_function
def test_arguments_follow_the_schema_and_stand_in_the_request(function: Function) -> None:
    rng = Random(1)
    types = {"string": str, "integer": int}
    for _ in range(300):
        drawn, texts = tool_values.arguments(rng, function)
        assert list(drawn) == list(function.parameters)
        for name, value in drawn.items():
            assert type(value) is types[function.parameters[name]]
            if isinstance(value, str):
                assert texts[name] == value == value.strip() != ""
                assert not set(value) & set("'\"<>\n\\")
            elif name not in ("hour", "minute"):
                assert texts[name] in (str(value), NUMBERS[value] if value < len(NUMBERS) else "")


def test_a_time_means_the_hour_and_the_minute() -> None:
    rng = Random(2)
    alarm = next(function for function in FUNCTIONS if function.name == "set_alarm")
    spellings: Counter[str] = Counter()
    for _ in range(4000):
        drawn, texts = tool_values.arguments(rng, alarm)
        text = texts["time"]
        spellings[re.sub(r"\d+", "9", text)] += 1
        hour, minute = clock(text)
        if text.endswith("am") and hour == 12:
            hour = 0
        assert (drawn["hour"], drawn["minute"]) == (hour, minute), text
        assert 0 <= hour < 24
        assert 0 <= minute < 60
    assert len(spellings) >= 15
    assert spellings["9:9"] > 1000


@every_function
def test_no_value_holds_words_that_end_or_join_a_clause(function: Function) -> None:
    rng = Random(3)
    for _ in range(500):
        drawn, _ = tool_values.arguments(rng, function)
        for name, value in drawn.items():
            if isinstance(value, str):
                found = set(value.split())
                assert not found & ENDS, value
                assert name == "text" or not found & JOINTS, value


def test_most_values_are_seen_once_only() -> None:
    rng = Random(4)
    for function in FUNCTIONS:
        for name, kind in function.parameters.items():
            if kind == "string":
                values = Counter(tool_values.arguments(rng, function)[0][name] for _ in range(1000))
                assert sum(count == 1 for count in values.values()) > 250, (function.name, name)


@every_function
def test_results_have_the_keys_of_the_function(function: Function) -> None:
    rng = Random(5)
    for _ in range(100):
        found = tool_values.result(rng, function)
        assert tuple(found) == function.result
        for value in found.values():
            assert value == 0 or value
            assert not isinstance(value, str) or not set(value) & set('"<>\\\n')
