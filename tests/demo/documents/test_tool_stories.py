"""Stories: requests of several sentences or verbs that need one call, for every function, with all its values."""

from random import Random

import pytest

from twinspark_demo.documents import tool_stories, tool_values
from twinspark_demo.documents.remarks import with_remark_behind
from twinspark_demo.documents.tool_tales import TALES
from twinspark_demo.knowledge import FUNCTIONS, Function

every_function = pytest.mark.parametrize("function", FUNCTIONS, ids=[function.name for function in FUNCTIONS])


@every_function
def test_every_tale_holds_every_value_once(function: Function) -> None:
    rng = Random(1)
    _, texts = tool_values.arguments(rng, function)
    marks = {parameter: f"@{parameter}@" for parameter in texts}
    for _ in range(500):
        told = TALES[function.name].write(rng, **marks)
        assert all(told.count(mark) == 1 for mark in marks.values()), told
        assert not set("{}|<>_[]") & set(told), told


@every_function
def test_a_function_has_many_tales(function: Function) -> None:
    rng = Random(2)
    _, texts = tool_values.arguments(rng, function)
    assert len({TALES[function.name].write(rng, **texts) for _ in range(400)}) > 80


def test_about_a_third_are_told_or_remarked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_stories, "sentence", lambda rng, asked: "plain")
    rng = Random(3)
    drawn = [tool_stories.request(rng, rng.choice(FUNCTIONS))[0] for _ in range(2000)]
    assert 600 < sum(text != "plain" for text in drawn) < 800


def test_a_remark_behind_starts_a_sentence() -> None:
    rng = Random(4)
    for text in ("Play it", "Play it.", "Is it on?"):
        for _ in range(50):
            remarked = with_remark_behind(rng, text)
            stopped = text if text[-1] in ".?" else text + "."
            assert remarked.startswith(stopped + " ")
            assert remarked[len(stopped) + 1].isupper()
