"""No fitting tool: words instead of a call, and which words follows from the request and the offer."""

import re
from collections.abc import Iterator
from random import Random

from twinspark_demo.documents.kinds import tool_none
from twinspark_demo.documents.tool_stories import STORIES
from twinspark_demo.documents.tool_wordings import WORDINGS
from twinspark_demo.knowledge import CAPITALS

NO_TOOL = "I have no tool for that."


def shape(wording: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{\w+\\\}", ".+", re.escape(wording)), re.IGNORECASE)


SHAPES = {
    name: [shape(wording) for wording in (*wordings.commands, *wordings.questions, *wordings.things)]
    for name, wordings in WORDINGS.items()
}

TOLD = [shape(story) for stories in STORIES.values() for story in stories]


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


def test_what_is_asked_is_not_offered() -> None:
    seen: set[str] = set()
    offered_though_asked = []
    for request, _, reply, offered in drawn(2000):
        if reply == NO_TOOL and not any(story.search(request) for story in TOLD):
            fitting = {name for name, shapes in SHAPES.items() if any(found.search(request) for found in shapes)}
            if fitting and fitting <= offered:
                offered_though_asked.append(request)
            seen |= fitting
    assert len(offered_though_asked) < 10  # "summarize the play about ..." only looks like a request for a song
    assert seen == set(WORDINGS)


def test_half_ask_for_another_function_and_the_others_have_their_ordinary_reply() -> None:
    replies = [reply for _, _, reply, _ in drawn(2000)]
    assert 950 < replies.count(NO_TOOL) < 1250
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
    assert checked > 100


def test_a_request_has_one_reply_whatever_is_offered_beside() -> None:
    replies: dict[str, str] = {}
    for request, _, reply, _ in drawn(6000, seed=3):
        assert replies.setdefault(request.lower(), reply) == reply, request
