"""Renaming: the reply is the program of the request with one identifier exchanged, checked by `re` and `ast`."""

import ast
import re
from random import Random

from twinspark_demo.documents.kinds.renaming import turn
from twinspark_demo.documents.turn import Turn


def _identifiers(program: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(program)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    return names | {node.arg for node in nodes if isinstance(node, ast.arg)}


def _renamed(drawn: Turn) -> list[tuple[str, str, str]]:
    """(old name, new name, old program): every way in which the request holds the reply under another name."""
    found = []
    for new in _identifiers(drawn.answer):
        for old in set(re.findall(r"[^\W\d]\w*", drawn.request)) - {new}:
            program = re.sub(rf"\b{new}\b", old, drawn.answer)
            if program in drawn.request:
                task = drawn.request.replace(program, "")
                if re.search(rf"\b{old}\b", task) and re.search(rf"\b{new}\b", task):
                    found.append((old, new, program))
    return found


def test_one_name_and_nothing_else_is_exchanged() -> None:
    rng = Random(1)
    for _ in range(250):
        drawn = turn(rng)
        renamed = _renamed(drawn)
        assert len(renamed) == 1, drawn
        old, new, program = renamed[0]
        assert old not in _identifiers(drawn.answer)
        assert new not in _identifiers(program)
        assert not re.search(rf"\b{old}\b", drawn.answer)
        assert 2 <= len(re.findall(rf"\b{old}\b", program)) <= 10
        assert 4 <= len(program.split("\n")) <= 12
        assert drawn.answer == drawn.answer.strip()


def test_many_programs_hold_the_old_name_within_other_names() -> None:
    rng = Random(2)
    decoyed = 0
    for _ in range(200):
        (old, _, program), *_ = _renamed(turn(rng))
        decoyed += any(old in other and old != other for other in _identifiers(program))
    assert decoyed > 40


def test_programs_are_indented_and_fenced_now_and_then() -> None:
    rng = Random(3)
    drawn = [turn(rng) for _ in range(500)]
    assert 150 < sum("\n    " in one.answer for one in drawn) < 450
    assert 60 < sum("```" in one.request for one in drawn) < 200
    assert 40 < sum("\n        " in one.answer for one in drawn) < 200  # a block within a block
    assert not any("```" in one.answer for one in drawn)


def test_requests_have_many_frames() -> None:
    rng = Random(4)
    frames = set()
    for _ in range(250):
        drawn = turn(rng)
        old, new, program = _renamed(drawn)[0]
        frame = drawn.request.replace(program, "P")
        frames.add(re.sub(rf"\b{new}\b", "N", re.sub(rf"\b{old}\b", "O", frame)))
    assert len(frames) > 150


def test_the_new_name_is_mentioned_first_in_a_part_of_the_requests() -> None:
    rng = Random(5)
    first = 0
    for _ in range(250):
        drawn = turn(rng)
        old, new, program = _renamed(drawn)[0]
        task = drawn.request.replace(program, "")
        first += re.search(rf"\b{new}\b", task).start() < re.search(rf"\b{old}\b", task).start()  # type: ignore[union-attr]
    assert 25 < first < 110


def test_many_programs_use_several_variables_many_times() -> None:
    rng = Random(6)
    crowded = 0
    for _ in range(200):
        _, _, program = _renamed(turn(rng))[0]
        names = _identifiers(program)
        counts = [len(re.findall(rf"\b{name}\b", program)) for name in names - {"print", "range"}]
        crowded += sum(count >= 4 for count in counts) >= 2
    assert crowded > 80
