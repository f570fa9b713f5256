"""Two calls, in the order asked."""

from collections.abc import Iterator
from random import Random
from typing import Any

from twinspark_demo.documents.kinds import tool_two
from twinspark_demo.knowledge import FUNCTIONS

BY_NAME = {function.name: function for function in FUNCTIONS}


def drawn(count: int, seed: int = 1) -> Iterator[tuple[str, list[dict[str, Any]], list[str]]]:
    """Requests, their calls, the names of the offered functions."""
    rng = Random(seed)
    for _ in range(count):
        conversation = tool_two.make(rng, 1000)
        *_, request, reply = conversation.messages
        assert reply["content"] == reply["reasoning_content"] == ""
        assert [call["id"] for call in reply["tool_calls"]] == ["call_1", "call_2"]
        offered = [tool["function"]["name"] for tool in conversation.tools]
        yield request["content"], [call["function"] for call in reply["tool_calls"]], offered


def test_both_functions_are_offered_and_their_values_are_in_the_request() -> None:
    for request, calls, offered in drawn(2000):
        assert 2 <= len(offered) <= 4
        assert len(set(offered)) == len(offered)
        for call in calls:
            assert call["name"] in offered
            assert list(call["arguments"]) == list(BY_NAME[call["name"]].parameters)
            assert all(value in request for value in call["arguments"].values() if isinstance(value, str))


def test_the_calls_stand_in_the_order_asked() -> None:
    compared = 0
    for request, (first, second), _ in drawn(2000, seed=2):
        own, others = (set(call["arguments"].values()) for call in (first, second))
        for value in clear(request, own - others):
            for other in clear(request, others - own):
                compared += 1
                assert request.index(value) < request.index(other), request
    assert compared > 500


def clear(request: str, values: set[str | int]) -> list[str]:
    """Those that can be found in the request without doubt."""
    return [value for value in values if isinstance(value, str) and len(value) > 5 and request.count(value) == 1]


def test_a_third_to_a_half_are_two_calls_of_one_function() -> None:
    same = [first["name"] == second["name"] for _, (first, second), _ in drawn(1000, seed=3)]
    assert 330 < sum(same) < 560


def test_every_pair_of_functions_may_meet() -> None:
    met = {(first["name"], second["name"]) for _, (first, second), _ in drawn(6000, seed=4)}
    assert len(met) > 0.95 * len(FUNCTIONS) ** 2
