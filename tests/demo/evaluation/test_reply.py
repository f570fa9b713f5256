"""Raw completions are read as reasoning, answer and calls."""

import pytest

from twinspark_demo.evaluation.reply import ParsedCall, Reply, read_completion
from twinspark_demo.knowledge import FUNCTIONS

TOOLS = [function.as_tool() for function in FUNCTIONS]
CITY = "<tool_call>get_weather<arg_key>city</arg_key><arg_value>New Oslo</arg_value></tool_call>"
ALARM = (
    "<tool_call>set_alarm<arg_key>hour</arg_key><arg_value>7</arg_value>"
    "<arg_key>minute</arg_key><arg_value>5</arg_value></tool_call>"
)


def read(text: str) -> Reply:
    return read_completion(text, TOOLS)


def test_the_answer_starts_after_the_reasoning() -> None:
    assert read("3 and 4</think>7") == Reply("7")
    assert read("</think>a</think>b") == Reply("a</think>b")


def test_without_an_end_of_reasoning_there_is_no_answer() -> None:
    assert read(f"7 {CITY}") == Reply("")


def test_calls_are_read_in_order_with_typed_values() -> None:
    calls = (ParsedCall("get_weather", {"city": "New Oslo"}), ParsedCall("set_alarm", {"hour": 7, "minute": 5}))
    assert read(f"</think>{CITY}{ALARM}") == Reply("", calls)
    assert read(f"</think>Well. {CITY}") == Reply("Well. ", calls[:1])


def test_a_call_without_arguments_is_a_call() -> None:
    assert read("</think><tool_call>get_time</tool_call>").calls == (ParsedCall("get_time", {}),)


def test_a_string_that_looks_like_a_number_stays_a_string_and_a_number_in_words_too() -> None:
    assert read(f"</think>{CITY.replace('New Oslo', '12')}").calls[0].arguments == {"city": "12"}
    assert read(f"</think>{ALARM.replace('>7<', '>seven<')}").calls[0].arguments == {"hour": "seven", "minute": 5}


@pytest.mark.parametrize(
    "text",
    [
        CITY.removesuffix("</tool_call>"),
        CITY.replace("</arg_value>", ""),
        CITY.replace("</arg_key>", " and </arg_key>x"),
        CITY.replace("<arg_key>", "<arg_key><arg_key>"),
        CITY.replace("</tool_call>", "<arg_key>city</arg_key><arg_value>Rome</arg_value></tool_call>"),
        CITY.replace("get_weather", "get_weather<tool_call>"),
        CITY.replace("</tool_call>", "and more</tool_call>"),
    ],
)
def test_a_call_of_another_form_is_broken(text: str) -> None:
    assert [call.broken for call in read(f"</think>{text}").calls] == [True]
