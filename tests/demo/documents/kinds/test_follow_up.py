"""Follow-ups: what was told is recalled as it was told, and the middle turns are answered as they are alone."""

import re
from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.details import detail
from twinspark_demo.documents.kinds.follow_up import make, make_several


def _turns(conversation: Conversation) -> list[tuple[str, str]]:
    messages = [message for message in conversation.messages if message["role"] != "system"]
    return [(ask["content"], reply["content"]) for ask, reply in zip(messages[::2], messages[1::2], strict=True)]


def test_the_last_answer_was_told_in_a_turn_that_was_noted() -> None:
    rng = Random(1)
    talks = [turns for turns in (_turns(make(rng, 1000)) for _ in range(2000)) if turns[0][1] == "Noted."]
    assert len(talks) > 900
    for turns in talks:
        told = " ".join(request for request, reply in turns if reply == "Noted.")
        request, answer = turns[-1]
        assert len(re.findall(rf"(?<!\w){re.escape(answer)}(?!\w)", told)) == 1, turns
        assert not re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", request), turns
        words = [set(re.findall(r"\w+", re.sub(r"\b(i|me|mine)\b", "my", text.lower()))) for text in (told, request)]
        assert words[0] & words[1], turns


def test_half_of_them_have_four_turns() -> None:
    rng = Random(2)
    lengths = [len(turns) for turns in (_turns(make(rng, 1000)) for _ in range(1500)) if turns[0][1] == "Noted."]
    assert sum(length == 4 for length in lengths) > 0.4 * len(lengths)
    assert {2, 3, 4, 5} <= set(lengths)


def test_several_requests_are_two_to_six() -> None:
    rng = Random(3)
    lengths = {len(_turns(make_several(rng, 1000))) for _ in range(500)}
    assert lengths == {2, 3, 4, 5, 6}


def test_arithmetic_in_the_middle_is_thought_out_unless_thinking_is_off() -> None:
    rng = Random(4)
    for _ in range(800):
        drawn = make(rng, 1000)
        thought = [message["reasoning_content"] for message in drawn.messages if message.get("reasoning_content")]
        assert drawn.enable_thinking or not thought


def test_a_question_may_lean_on_the_one_before() -> None:
    rng = Random(5)
    leaning = [
        turns for turns in (_turns(make_several(rng, 1000)) for _ in range(500)) if "about" in turns[-1][0].lower()
    ]
    assert len(leaning) > 15


def test_what_is_told_has_many_frames() -> None:
    rng = Random(6)
    frames = set()
    for _ in range(2000):
        turns = _turns(make(rng, 1000))
        if turns[0][1] == "Noted.":
            frames.add(turns[0][0].replace(turns[-1][1], "V"))
    assert len(frames) > 500


def test_every_detail_is_asked_for_in_many_ways() -> None:
    rng = Random(7)
    asked: dict[str, set[str]] = {}
    for _ in range(12000):
        known = detail(rng)
        assert known.value.lower() not in known.question.lower() + known.order.lower()
        asked.setdefault(known.subject, set()).update((known.question, known.order))
    assert len(asked) > 100
    assert min(map(len, asked.values())) > 25
