"""What is said elsewhere, to be copied: ordinary sentences, requests and replies of every kind, programs, JSON."""

import json
from collections.abc import Callable
from random import Random

from twinspark_demo.documents import filler
from twinspark_demo.documents.codes_asked import asked
from twinspark_demo.documents.codes_told import Teller
from twinspark_demo.documents.details import detail
from twinspark_demo.documents.kinds import arithmetic, chat, counting, facts, json_array, renaming
from twinspark_demo.documents.politeness import upper_first
from twinspark_demo.documents.remarks import remark
from twinspark_demo.documents.tool_small_talk import small_talk
from twinspark_demo.documents.tool_stories import request
from twinspark_demo.documents.turn import Turn
from twinspark_demo.documents.words import NOUNS, code, name, open_word
from twinspark_demo.knowledge import FUNCTIONS

_RECORDS_BUDGET, _MOST_RECORDS = 160, 3
_ANSWER_SHARE = 0.2


def sentences(rng: Random) -> str:
    """One to four ordinary sentences."""
    people = [name(rng), name(rng)]
    told = [_sentence(rng, people) for _ in range((1, 1, 2, 2, 3, 4)[int(rng.random() * 6)])]
    return " ".join(told)


def prose(rng: Random) -> str:
    """Five to nine ordinary sentences about the same people, mostly longer than 40 words."""
    people = [name(rng), name(rng)]
    return " ".join(_sentence(rng, people) for _ in range(5 + int(rng.random() * 5)))


def turn_text(rng: Random) -> str:
    """What one side says in an exchange of another kind: mostly the request, which is copied and not met."""
    maker = _TURNS[int(rng.random() * len(_TURNS))]
    drawn = maker(rng)
    return drawn.answer if rng.random() < _ANSWER_SHARE else drawn.request


def object_text(rng: Random) -> str:
    """A JSON object or a JSON schema, some with objects in it."""
    draw = rng.random()
    if draw < 0.3:
        tool = FUNCTIONS[int(rng.random() * len(FUNCTIONS))].as_tool()
        return json.dumps(tool if draw < 0.1 else tool["function"])
    return json.dumps(_object(rng, 2 if draw < 0.5 else 1), separators=(",", ":") if draw > 0.85 else None)


def _sentence(rng: Random, people: list[str]) -> str:
    draw = rng.random()
    if draw < 0.5:
        return filler.sentence(rng, people)
    if draw < 0.65:
        return upper_first(remark(rng)) + (".", ".", ".", "!")[int(rng.random() * 4)]
    if draw < 0.75:
        return upper_first(Teller(rng, frozenset()).sentence(people[0], code(rng)))
    return upper_first(detail(rng).statement) + "." if draw < 0.9 else small_talk(rng)


def _object(rng: Random, depth: int) -> dict[str, object]:
    return {_key(rng): _value(rng, depth - 1) for _ in range(1 + int(rng.random() * 3))}


def _key(rng: Random) -> str:
    return NOUNS[int(rng.random() * len(NOUNS))]


def _value(rng: Random, depth: int) -> object:
    draw = rng.random()
    if depth and draw < 0.5:
        return _object(rng, depth)
    if draw < 0.2:
        return [open_word(rng) for _ in range(int(rng.random() * 3))]
    if draw < 0.3:
        return (True, False, None)[int(rng.random() * 3)]
    return int(rng.random() * 1000) if draw < 0.5 else open_word(rng)


def _told(rng: Random) -> Turn:
    known = detail(rng)
    return Turn(upper_first(known.question), upper_first(known.statement) + ".")


def _coded(rng: Random) -> Turn:
    who, secret = name(rng), code(rng)
    return Turn(asked(rng, who, False), Teller(rng, frozenset()).sentence(who, secret))


def _called(rng: Random) -> Turn:
    text, _ = request(rng, FUNCTIONS[int(rng.random() * len(FUNCTIONS))])
    return Turn(text, text)


_TURNS: tuple[Callable[[Random], Turn], ...] = (
    *(facts.turn, facts.turn, chat.turn, chat.turn, chat.turn, _told, _told, _coded, _called, _called),
    lambda rng: arithmetic.turn(rng, True),
    lambda rng: counting.turn(rng, 10),
    lambda rng: json_array.turn(rng, _RECORDS_BUDGET, _MOST_RECORDS),
    renaming.turn,
)
