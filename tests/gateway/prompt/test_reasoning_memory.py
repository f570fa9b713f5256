"""The memory of reasoning: found by ids or by content, within its limits, in its scope."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from twinspark_gateway.prompt.reasoning_memory import ReasoningMemory
from twinspark_gateway.prompt.template import Conversation

USER = {"role": "user", "content": "hello"}


def call(call_id: str, name: str = "f", **arguments: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def turn(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": list(calls), **more}


def restored(memory: ReasoningMemory, *messages: dict[str, Any], scope: str = "") -> list[str | None]:
    """Give the reasoning of every message; check the count."""
    given_ = Conversation(messages=messages)
    conversation, count = memory.restore(scope, given_)
    found = [message.get("reasoning_content") for message in conversation.messages]
    assert count == sum(reasoning is not None for reasoning in found) - sum("reasoning_content" in m for m in messages)
    assert [dict(message) | {"reasoning_content": None} for message in conversation.messages] == [
        message | {"reasoning_content": None} for message in messages
    ]
    return found


def test_a_reply_is_found_by_the_id_of_a_call() -> None:
    memory = ReasoningMemory(10, 1000)
    memory.remember("", [USER], [call("a", x=1), call("b", x=2)], "why")
    assert restored(memory, USER, turn(call("a", x=5))) == [None, "why"]
    assert restored(memory, USER, turn(call("b"))) == [None, "why"]
    assert restored(memory, USER, turn(call("c"))) == [None, None]


def test_a_client_that_changes_ids_is_found_by_what_was_asked_and_called() -> None:
    memory = ReasoningMemory(10, 1000)
    memory.remember("", [USER], [call("a", x=1, y=2)], "why")
    assert restored(memory, USER, turn(call("1", y=2, x=1))) == [None, "why"]
    without_id = {"type": "function", "function": {"name": "f", "arguments": {"x": 1, "y": 2}}}
    assert restored(memory, USER, turn(without_id)) == [None, "why"]
    for other in (turn(call("1", x=1)), turn(call("1", "g", x=1, y=2)), turn(call("1", x=1, y=2), call("2"))):
        assert restored(memory, USER, other) == [None, None]
    assert restored(memory, {"role": "user", "content": "bye"}, turn(call("1", x=1, y=2))) == [None, None]


def test_the_clients_own_reasoning_wins_also_if_it_is_empty() -> None:
    memory = ReasoningMemory(10, 1000)
    memory.remember("", [USER], [call("a")], "why")
    for own in ("mine", ""):
        assert restored(memory, USER, turn(call("a"), reasoning_content=own)) == [None, own]


def test_every_turn_of_a_tool_loop_is_restored_and_turns_without_calls_never() -> None:
    memory = ReasoningMemory(10, 1000)
    first, second = turn(call("a", x=1)), turn(call("b", x=2))
    memory.remember("", [USER], first["tool_calls"], "one")
    memory.remember("", [USER, first], second["tool_calls"], "two")
    memory.remember("", [USER], [], "three")
    tool = {"role": "tool", "content": "ok"}
    plain = {"role": "assistant", "content": "x"}
    assert restored(memory, USER, first, tool, second, tool, plain) == [None, "one", None, "two", None, None]


def test_another_keys_replies_are_never_found() -> None:
    memory = ReasoningMemory(10, 1000)
    memory.remember("ann", [USER], [call("a")], "why")
    assert restored(memory, USER, turn(call("a")), scope="bob") == [None, None]
    assert restored(memory, USER, turn(call("a")), scope="ann") == [None, "why"]


def test_the_oldest_unused_reply_goes_first() -> None:
    memory = ReasoningMemory(2, 1000)
    for name in ("a", "b"):
        memory.remember("", [USER], [call(name, name=name)], name)
    assert restored(memory, USER, turn(call("a"))) == [None, "a"]
    memory.remember("", [USER], [call("c", name="c")], "c")
    assert [restored(memory, USER, turn(call(name)))[1] for name in "abc"] == ["a", None, "c"]


def test_nothing_is_kept_over_the_bytes_or_without_replies() -> None:
    memory = ReasoningMemory(10, 4)
    memory.remember("", [USER], [call("a")], "é" * 3)
    assert restored(memory, USER, turn(call("a"))) == [None, None]
    memory.remember("", [USER], [call("b", x=1)], "éé")
    assert restored(memory, USER, turn(call("b"))) == [None, "éé"]
    memory.remember("", [USER], [call("c", x=2)], "x")
    assert restored(memory, USER, turn(call("b")), turn(call("c"))) == [None, None, "x"]
    none = ReasoningMemory(0, 1000)
    none.remember("", [USER], [call("a")], "why")
    assert restored(none, USER, turn(call("a"))) == [None, None]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 2), st.integers(1, 9))))
def test_its_books_balance(steps: list[tuple[str, int, int]]) -> None:
    memory = ReasoningMemory(3, 20)
    for call_id, argument, size in steps:
        memory.remember("", [USER], [call(call_id, x=argument)], "x" * size)
        assert restored(memory, USER, turn(call(call_id))) == [None, "x" * size]
        assert len(memory._replies) <= 3
        assert memory._num_bytes == sum(reply.num_bytes for reply in memory._replies.values()) <= 20
        assert memory._by_key == {key: number for number, reply in memory._replies.items() for key in reply.keys}
        assert all(reply.keys for reply in memory._replies.values())
