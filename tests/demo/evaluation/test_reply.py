"""Chat messages are read as answer and calls."""

import pytest

from twinspark_demo.evaluation.reply import ParsedCall, Reply, read_message


def test_an_answer_without_calls_is_its_content() -> None:
    assert read_message("7", []) == Reply("7")


def test_calls_are_read_in_order_with_their_values() -> None:
    calls = [("get_weather", '{"city": "New Oslo"}'), ("set_alarm", '{"hour": 7, "minute": "5"}'), ("get_time", "{}")]
    assert read_message("Well.", calls) == Reply(
        "Well.",
        (
            ParsedCall("get_weather", {"city": "New Oslo"}),
            ParsedCall("set_alarm", {"hour": 7, "minute": "5"}),
            ParsedCall("get_time", {}),
        ),
    )


@pytest.mark.parametrize("arguments", ["", "null", "[1]", '{"city": "Os'])
def test_arguments_that_are_no_object_are_broken(arguments: str) -> None:
    assert read_message("", [("get_weather", arguments)]).calls == (ParsedCall("get_weather", {}, broken=True),)


def test_a_call_that_stayed_text_is_broken() -> None:
    reply = read_message("<tool_call>get_weather<arg_key>city</arg_key>", [("get_time", "{}")])
    assert [call.broken for call in reply.calls] == [False, True]
