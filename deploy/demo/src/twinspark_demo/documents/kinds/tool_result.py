"""A call's result has come, sometimes two: the assistant reports the values, and sometimes a request follows."""

from collections.abc import Sequence
from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents import tool_values
from twinspark_demo.documents.kinds import arithmetic, facts, tool_two
from twinspark_demo.documents.tool_calls import (
    Call,
    Message,
    held,
    offer,
    reply,
    reply_with,
    report,
    tool_message,
    user,
)
from twinspark_demo.documents.tool_stories import request
from twinspark_demo.documents.turn import Setting
from twinspark_demo.knowledge import FUNCTIONS, Function

KIND = "tool_result"
_TWO_SHARE, _MORE_SHARE = 0.3, 0.25


def make(rng: Random, budget: int) -> Conversation:
    """A request, its calls, their results and the report; `budget` is far from being reached."""
    setting = Setting.draw(rng)
    text, calls = tool_two.request(rng) if rng.random() < _TWO_SHARE else _one_call(rng)
    more: Sequence[Message] = ()
    needed = [function for function, _ in calls]
    if rng.random() < _MORE_SHARE:
        more, also_needed = _continuation(rng, setting)
        needed += also_needed
    return held(setting, KIND, (user(text), *_answered(rng, calls), *more), offer(rng, needed))


def _one_call(rng: Random) -> tuple[str, list[Call]]:
    function = rng.choice(FUNCTIONS)
    text, arguments = request(rng, function)
    return text, [(function, arguments)]


def _answered(rng: Random, calls: Sequence[Call]) -> list[Message]:
    """The calls, their results, the report."""
    results = [tool_values.result(rng, function) for function, _ in calls]
    messages = [tool_message(rng, number, result) for number, result in enumerate(results, start=1)]
    reports = (report(call, result) for call, result in zip(calls, results, strict=True))
    return [reply_with(calls), *messages, reply(" ".join(reports))]


def _continuation(rng: Random, setting: Setting) -> tuple[Sequence[Message], list[Function]]:
    """A further request with its reply, and the functions that it needs."""
    draw = rng.random()
    if draw < 0.5:
        text, calls = _one_call(rng)
        last = _answered(rng, calls) if rng.random() < 0.5 else [reply_with(calls)]
        return [user(text), *last], [function for function, _ in calls]
    turn = facts.turn(rng) if draw < 0.75 else arithmetic.turn(rng, setting.enable_thinking)
    return turn.messages(), []
