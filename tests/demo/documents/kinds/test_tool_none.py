"""No fitting tool: words instead of a call, and which words follows from the request and the offer."""

import re
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from twinspark_demo.documents import tool_stories
from twinspark_demo.documents.kinds import tool_none
from twinspark_demo.documents.tool_values import Argument
from twinspark_demo.knowledge import CAPITALS, FUNCTIONS, Function

NO_TOOL = "I have no tool for that."


def drawn(count: int, seed: int = 1) -> Iterator[tuple[str, str, str, set[str]]]:
    """Request, thoughts, reply, names of the offered functions."""
    rng = Random(seed)
    for _ in range(count):
        conversation = tool_none.make(rng, 1000)
        *_, request, reply = conversation.messages
        assert "tool_calls" not in reply
        assert 2 <= len(conversation.tools) <= 4
        offered = {tool["function"]["name"] for tool in conversation.tools}
        yield request["content"], reply["reasoning_content"], reply["content"], offered


def test_what_is_asked_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()
    latest: list[Function] = []

    def request(rng: Random, function: Function) -> tuple[str, dict[str, Argument]]:
        asked[function.name] += 1
        latest.append(function)
        return tool_stories.request(rng, function)

    monkeypatch.setattr(tool_none, "request", request)
    for _, _, reply, offered in drawn(6000):
        if latest:
            assert reply == NO_TOOL
            assert latest.pop().name not in offered
    assert set(asked) == {function.name for function in FUNCTIONS}
    assert min(asked.values()) > 0.6 * max(asked.values())
    assert 3400 < asked.total() < 3800


def test_most_have_the_fixed_sentence_and_the_others_their_ordinary_reply() -> None:
    replies = [reply for _, _, reply, _ in drawn(2000)]
    assert 1380 < replies.count(NO_TOOL) < 1620
    assert all(replies)
    assert not any("cannot help" in reply for reply in replies)
    assert set(replies) & set(CAPITALS.values())


def test_sums_are_right() -> None:
    checked = 0
    for request, _, reply, _ in drawn(3000, seed=2):
        match = re.search(r"(?<!\d)(\d+) ?([+*x\u00d7-]) ?(\d+)(?!\d)", request)
        if match and reply != NO_TOOL:  # a value may look like a sum: 7x2 is a code too
            a, b = int(match[1]), int(match[3])
            assert int(reply) == {"+": a + b, "-": a - b}.get(match[2], a * b)
            checked += 1
    assert checked > 60


def test_a_request_has_one_reply_whatever_is_offered_beside() -> None:
    replies: dict[str, str] = {}
    for request, _, reply, _ in drawn(6000, seed=3):
        assert replies.setdefault(request.lower(), reply) == reply, request
