"""Wordings of requests: enough of them for every function, each with a place for every value."""

import string
from collections import Counter

import pytest

from twinspark_demo.documents.tool_wordings import WORDINGS
from twinspark_demo.knowledge import FUNCTIONS, Function

every_function = pytest.mark.parametrize("function", FUNCTIONS, ids=[function.name for function in FUNCTIONS])


def places(wording: str) -> list[str]:
    return [name for _, name, _, _ in string.Formatter().parse(wording) if name is not None]


def parameters(function: Function) -> list[str]:
    return ["time"] if function.name == "set_alarm" else list(function.parameters)


@every_function
def test_a_function_has_many_wordings_and_none_twice(function: Function) -> None:
    wordings = WORDINGS[function.name]
    single = Counter((*wordings.commands, *wordings.questions, *wordings.things))
    assert len(single) >= 16
    assert max(single.values()) == 1


@every_function
def test_a_wording_has_every_value_once(function: Function) -> None:
    wordings = WORDINGS[function.name]
    for wording in (*wordings.commands, *wordings.questions, *wordings.things):
        assert sorted(places(wording)) == sorted(parameters(function)), wording


@every_function
def test_a_pair_has_every_value_of_the_first_call_and_some_of_the_second(function: Function) -> None:
    for wording in WORDINGS[function.name].pairs:
        found = places(wording)
        second = [name.removesuffix("_2") for name in found if name.endswith("_2")]
        assert sorted(name for name in found if not name.endswith("_2")) == sorted(parameters(function)), wording
        assert second, wording
        assert set(second) <= set(parameters(function)), wording
        assert len(found) == len(set(found)), wording


def test_a_wording_belongs_to_one_function() -> None:
    bare: dict[str, str] = {}
    for function, wordings in WORDINGS.items():
        for wording in (*wordings.commands, *wordings.questions, *wordings.things):
            shape = wording
            for place in places(wording):
                shape = shape.replace(f"{{{place}}}", "*")
            assert bare.setdefault(shape.replace("'", "").replace('"', ""), function) == function, wording


def test_origin_stands_before_target() -> None:
    wordings = WORDINGS["get_distance"]
    for wording in (*wordings.commands, *wordings.questions, *wordings.things):
        assert places(wording) == ["origin", "target"]


def test_unquoted_texts_stand_at_the_end() -> None:
    for wordings in WORDINGS.values():
        for wording in (*wordings.commands, *wordings.questions, *wordings.things, *wordings.pairs):
            for place in places(wording):
                if place.startswith("text"):
                    before, after = wording.split(f"{{{place}}}")
                    assert not after or (before[-1] in "'\"" and after[0] == before[-1]), wording
