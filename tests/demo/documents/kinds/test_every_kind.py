"""What holds for the documents of every kind: their form, their settings, their size, one reply to one request."""

from collections.abc import Iterator
from random import Random
from types import ModuleType

import pytest

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.kinds import (
    arithmetic,
    chat,
    copying,
    counting,
    facts,
    follow_up,
    json_array,
    needle,
    renaming,
)

_KINDS = (arithmetic, chat, copying, counting, facts, follow_up, json_array, needle, renaming)
_SHORT = tuple(kind for kind in _KINDS if kind is not needle)
_names = [kind.__name__.rsplit(".", 1)[1] for kind in _KINDS]
every_kind = pytest.mark.parametrize("kind", _KINDS, ids=_names)


def _drawn(kind: ModuleType, count: int, budget: int = 1000, seed: int = 1) -> Iterator[Conversation]:
    rng = Random(seed)
    return (kind.make(rng, budget) for _ in range(count))


@every_kind
def test_user_and_assistant_take_turns_and_the_assistant_is_last(kind: ModuleType) -> None:
    for conversation in _drawn(kind, 150):
        assert conversation.kind == kind.KIND
        roles = [message["role"] for message in conversation.messages]
        if roles[0] == "system":
            del roles[0]
        assert roles == ["user", "assistant"] * (len(roles) // 2)
        for message in conversation.messages:
            assert message["content"] == message["content"].strip() != ""
            if message["role"] == "assistant":
                assert message["reasoning_content"] == message["reasoning_content"].strip()
                assert "<|" not in message["content"] and "think>" not in message["content"]


@every_kind
def test_a_seed_gives_the_same_documents(kind: ModuleType) -> None:
    assert list(_drawn(kind, 30, seed=7)) == list(_drawn(kind, 30, seed=7))
    assert list(_drawn(kind, 30, seed=7)) != list(_drawn(kind, 30, seed=8))


@pytest.mark.parametrize("budget", [450, 1000])
@every_kind
def test_the_budget_is_respected(kind: ModuleType, budget: int) -> None:
    for conversation in _drawn(kind, 120, budget):
        characters = sum(len(part["content"] + part.get("reasoning_content", "")) for part in conversation.messages)
        assert characters / 2.2 < 1.1 * budget


@pytest.mark.parametrize("kind", _SHORT, ids=[kind.__name__.rsplit(".", 1)[1] for kind in _SHORT])
def test_one_in_ten_has_a_system_message_low_effort_high_effort_no_thinking(kind: ModuleType) -> None:
    drawn = list(_drawn(kind, 1000))
    for count in (
        sum(conversation.messages[0]["role"] == "system" for conversation in drawn),
        sum(conversation.reasoning_effort == "low" for conversation in drawn),
        sum(conversation.reasoning_effort == "high" for conversation in drawn),
        sum(not conversation.enable_thinking for conversation in drawn),
    ):
        assert 65 < count < 140


def test_only_arithmetic_thinks() -> None:
    for kind in _SHORT:
        if kind is not follow_up:
            thought = [bool(conversation.messages[-1]["reasoning_content"]) for conversation in _drawn(kind, 200)]
            assert any(thought) == (kind is arithmetic)


def test_a_first_request_has_one_reply_in_all_kinds_together() -> None:
    replies: dict[str, str] = {}
    for kind in _SHORT:
        for conversation in _drawn(kind, 2500, seed=3):
            request, reply = [part["content"] for part in conversation.messages if part["role"] != "system"][:2]
            assert replies.setdefault(request.lower() if kind is chat else request, reply) == reply, request
