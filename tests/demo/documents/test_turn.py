"""Settings of conversations: clients that drop past reasoning are seen, and the last reply is always thought out."""

from random import Random

from twinspark_demo.documents.turn import DROPPED_SHARE, Setting, Turn

TURNS = [Turn("1+1", "2", "1+1=2"), Turn("Hi", "Hello!"), Turn("2+2", "4", "2+2=4")]


def test_dropped_reasoning_makes_past_replies_context_and_leaves_the_last_one() -> None:
    kept = Setting().conversation("test", TURNS).messages
    dropped = Setting(drops_reasoning=True).conversation("test", TURNS).messages
    assert [message.get("reasoning_content") for message in kept if message["role"] == "assistant"] == [
        "1+1=2",
        "",
        "2+2=4",
    ]
    replies = [message for message in dropped if message["role"] == "assistant"]
    assert [reply["reasoning_content"] for reply in replies] == ["", "", "2+2=4"]
    assert [bool(reply.get("is_context")) for reply in replies] == [True, False, False]
    assert [reply["content"] for reply in replies] == ["2", "Hello!", "4"]


def test_a_third_of_the_settings_with_thinking_drops_it() -> None:
    rng = Random(1)
    drawn = [Setting.draw(rng) for _ in range(3000)]
    thinking = [setting for setting in drawn if setting.enable_thinking]
    share = sum(setting.drops_reasoning for setting in thinking) / len(thinking)
    assert abs(share - DROPPED_SHARE) < 0.04
    assert not any(setting.drops_reasoning for setting in drawn if not setting.enable_thinking)
