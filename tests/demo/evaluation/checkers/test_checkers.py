"""Every checker takes the right reply and refuses its near misses."""

from typing import Any

import pytest

from twinspark_demo.evaluation.checkers import CHECKERS
from twinspark_demo.evaluation.drawing import kinds
from twinspark_demo.evaluation.kinds.calls import Call
from twinspark_demo.evaluation.reply import ParsedCall, Reply

RECORDS = [{"name": "Ana", "age": 31}, {"name": "Ben", "age": 4}]
PROGRAM = "total = 1\nfor i in range(3):\n    total = total + i\nprint(total)"
NEEDLE = {"code": "7xk2q", "others": ["ab12", "QQ9Z7"]}
WEATHER = Call("get_weather", {"city": "Oslo"})
ALARM = Call("set_alarm", {"hour": 7, "minute": 5})
CITY = ParsedCall("get_weather", {"city": "Oslo"})
WAKE = ParsedCall("set_alarm", {"hour": 7, "minute": 5})

RIGHT: list[tuple[str, Any, Reply]] = [
    ("arithmetic", 1204, Reply("1204")),
    ("arithmetic", -7, Reply("-7")),
    ("arithmetic", 12, Reply("5 + 7 is 12.")),
    ("facts", "Paris", Reply("Paris")),
    ("facts", "Paris", Reply(" paris.\n")),
    ("facts", "8", Reply("8")),
    ("counting", [3, 2, 1], Reply("3, 2, 1")),
    ("counting", [3, 2, 1], Reply("3 2 1 ")),
    ("copy", "zuv 8K3 lamp", Reply("zuv 8K3 lamp\n")),
    ("json", RECORDS, Reply('[{"name": "Ana", "age": 31}, {"name": "Ben", "age": 4}]')),
    ("json", RECORDS, Reply('[{"age":31,"name":"Ana"},\n {"age":4,"name":"Ben"}]')),
    ("rename", PROGRAM, Reply(PROGRAM + "\n")),
    ("rename", PROGRAM, Reply(f"```python\n{PROGRAM}\n```")),
    ("needle_8000", NEEDLE, Reply("7xk2q")),
    ("needle_100", NEEDLE, Reply("The code of Marlow is 7xk2q.")),
    ("follow_up", "12", Reply("12")),
    ("follow_up", "Rex", Reply("Your pet is called Rex.")),
    ("tool_one", [WEATHER], Reply("", (CITY,))),
    ("tool_two", [WEATHER, ALARM], Reply("", (CITY, WAKE))),
    ("tool_two", [WEATHER, ALARM], Reply("", (WAKE, CITY))),
    ("tool_two", [WEATHER, WEATHER], Reply("", (CITY, CITY))),
    ("tool_result", ["sunny", -3], Reply("It is sunny at -3 degrees.")),
    ("tool_none", None, Reply("I have no tool for that.")),
    ("tool_none", "I have no tool for that.", Reply("I have no tool for that.")),
    ("tool_none", "Paris", Reply("Paris")),
    ("tool_none", 12, Reply("12")),
    ("tool_result", ["07:05"], Reply("It is 07:05.")),
    ("tool_result", [3, "a.txt, b.md"], Reply("3: a.txt, b.md")),
]
WRONG: list[tuple[str, Any, Reply]] = [
    ("arithmetic", 1204, Reply("1205")),
    ("arithmetic", 1204, Reply("12045")),
    ("arithmetic", -7, Reply("7")),
    ("arithmetic", 12, Reply("12 is 5 + 7")),
    ("arithmetic", 12, Reply("twelve")),
    ("facts", "Paris", Reply("Paris is the capital")),
    ("facts", "Paris", Reply("Paris..")),
    ("facts", "8", Reply("18")),
    ("facts", "8", Reply("")),
    ("counting", [3, 2, 1], Reply("3, 2")),
    ("counting", [3, 2, 1], Reply("1, 2, 3")),
    ("counting", [3, 2, 1], Reply("3, 2, 1, 0")),
    ("counting", [3, 2, 1], Reply("3, 2, 2, 1")),
    ("copy", "zuv 8K3 lamp", Reply("zuv 8K3")),
    ("copy", "zuv 8K3 lamp", Reply("zuv 8k3 lamp")),
    ("copy", "zuv 8K3 lamp", Reply("zuv 8K3 lamp.")),
    ("copy", "zuv 8K3 lamp", Reply("zuv  8K3 lamp")),
    ("json", RECORDS, Reply('[{"name": "Ana", "age": "31"}, {"name": "Ben", "age": 4}]')),
    ("json", RECORDS, Reply('[{"name": "Ben", "age": 4}, {"name": "Ana", "age": 31}]')),
    ("json", RECORDS, Reply('[{"name": "Ana", "age": 31}]')),
    ("json", RECORDS, Reply('[{"name": "Ana", "age": 31}, {"name": "Ben", "age": 4}] Done.')),
    ("json", RECORDS, Reply('[{"name": "Ana", "age": 31}, {"name": "Ben", "age": 4}')),
    ("json", [{"a": 1}], Reply('[{"a": true}]')),
    ("json", [{"a": 1}], Reply('{"a": 1}')),
    ("rename", PROGRAM, Reply(PROGRAM.replace("print(total)", "print(totals)"))),
    ("rename", PROGRAM, Reply(f"Here it is:\n{PROGRAM}")),
    ("rename", PROGRAM, Reply(f"```\n{PROGRAM}\n```\nDone.")),
    ("rename", PROGRAM, Reply(PROGRAM.replace("    ", "  "))),
    ("needle_8000", NEEDLE, Reply("7xk2")),
    ("needle_1000", NEEDLE, Reply("7XK2Q")),
    ("needle_100", NEEDLE, Reply("7xk2q or QQ9Z7")),
    ("follow_up", "12", Reply("312")),
    ("follow_up", "Rex", Reply("Rexy")),
    ("follow_up", "Rex", Reply("rex")),
    ("tool_one", [WEATHER], Reply("", (CITY, CITY))),
    ("tool_one", [WEATHER], Reply("Oslo is nice.")),
    ("tool_one", [WEATHER], Reply("", (ParsedCall("get_time", {"city": "Oslo"}),))),
    ("tool_one", [WEATHER], Reply("", (ParsedCall("get_weather", {"city": "oslo"}),))),
    ("tool_one", [WEATHER], Reply("", (ParsedCall("get_weather", {"city": "Oslo", "day": "x"}),))),
    ("tool_one", [WEATHER], Reply("", (ParsedCall("get_weather", {"city": "Oslo"}, broken=True),))),
    ("tool_one", [ALARM], Reply("", (ParsedCall("set_alarm", {"hour": "7", "minute": 5}),))),
    ("tool_one", [Call("set_timer", {"minutes": 1})], Reply("", (ParsedCall("set_timer", {"minutes": True}),))),
    ("tool_two", [WEATHER, ALARM], Reply("", (CITY,))),
    ("tool_two", [WEATHER, ALARM], Reply("", (CITY, CITY))),
    ("tool_two", [WEATHER, ALARM], Reply("", (CITY, WAKE, WAKE))),
    ("tool_result", ["sunny", -3], Reply("It is sunny at 3 degrees.")),
    ("tool_result", ["sunny", -3], Reply("It is -3 degrees.")),
    ("tool_result", ["done"], Reply("It is done.", (CITY,))),
    ("tool_none", None, Reply("  ")),
    ("tool_none", None, Reply("Let me see.", (CITY,))),
    ("tool_none", "I have no tool for that.", Reply("It is sunny.")),
    ("tool_none", "Paris", Reply("I have no tool for that.")),
    ("tool_none", "Paris", Reply("Paris", (CITY,))),
    ("tool_none", 12, Reply("13")),
    ("tool_result", ["sunny", 3], Reply("It is sunny at -3 degrees.")),
    ("tool_result", [3], Reply("It costs 3.5 dollars.")),
    ("tool_result", [5], Reply("It costs 3.5 dollars.")),
    ("tool_result", ["07:05"], Reply("It is 07:05:30.")),
]


@pytest.mark.parametrize(("kind", "expected", "reply"), RIGHT)
def test_a_right_reply_is_taken(kind: str, expected: Any, reply: Reply) -> None:
    assert CHECKERS[kind](expected, reply)


@pytest.mark.parametrize(("kind", "expected", "reply"), WRONG)
def test_a_near_miss_is_refused(kind: str, expected: Any, reply: Reply) -> None:
    assert not CHECKERS[kind](expected, reply)


def test_every_kind_has_a_checker_and_each_checker_is_tried() -> None:
    assert list(CHECKERS) == list(kinds())
    for tried in (RIGHT, WRONG):
        assert {CHECKERS[kind] for kind, _, _ in tried} == set(CHECKERS.values())
