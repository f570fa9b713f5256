"""Results: the report tells every value, and what follows it is a request like others."""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.kinds import tool_result
from twinspark_demo.knowledge import FUNCTIONS

BY_NAME = {function.name: function for function in FUNCTIONS}


def drawn(count: int, seed: int = 1) -> Iterator[Conversation]:
    rng = Random(seed)
    return (tool_result.make(rng, 1000) for _ in range(count))


def rounds(conversation: Conversation) -> list[tuple[list[dict[str, Any]], list[dict[str, Any]], str]]:
    """Calls, result messages and the report of each round of calls that was answered."""
    found = []
    messages = list(conversation.messages)
    for index, message in enumerate(messages):
        calls = message.get("tool_calls", [])
        results = messages[index + 1 : index + 1 + len(calls)]
        if calls and results:
            found.append((calls, [dict(result) for result in results], messages[index + 1 + len(calls)]["content"]))
    return found


def test_every_result_answers_its_call_with_the_keys_of_the_function() -> None:
    for conversation in drawn(1500):
        for calls, results, _ in rounds(conversation):
            assert [result["tool_call_id"] for result in results] == [call["id"] for call in calls]
            for call, result in zip(calls, results, strict=True):
                assert result["role"] == "tool"
                assert set(json.loads(result["content"])) == set(BY_NAME[call["function"]["name"]].result)


def test_the_report_tells_every_value_in_the_order_of_the_results() -> None:
    for conversation in drawn(1500):
        for _, results, report in rounds(conversation):
            for result in results:
                for value in json.loads(result["content"]).values():
                    for part in value if isinstance(value, list) else [value]:
                        assert (part if isinstance(part, str) else json.dumps(part)) in report
            assert "<tool_call>" not in report


def test_three_in_ten_have_two_results_and_a_quarter_go_on() -> None:
    conversations = list(drawn(2000))
    two = sum(len(rounds(conversation)[0][0]) == 2 for conversation in conversations)
    more = sum(sum(part["role"] == "user" for part in one.messages) == 2 for one in conversations)
    assert 520 < two < 680
    assert 420 < more < 580
    assert any("tool_calls" in conversation.messages[-1] for conversation in conversations)


def test_all_calls_are_of_offered_functions() -> None:
    for conversation in drawn(1000, seed=2):
        offered = {tool["function"]["name"] for tool in conversation.tools}
        assert 2 <= len(conversation.tools) <= 4
        for message in conversation.messages:
            for call in message.get("tool_calls", ()):
                assert call["function"]["name"] in offered
