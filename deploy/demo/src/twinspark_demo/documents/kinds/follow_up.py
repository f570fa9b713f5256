"""Follow-ups: something is told, other short requests come between, what was told is asked for; and long talks."""

from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.details import Detail, detail
from twinspark_demo.documents.kinds import arithmetic, chat, copying, counting, facts, json_array, renaming
from twinspark_demo.documents.kinds.needle import NOTED
from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.politeness import order, question, stopped, upper_first
from twinspark_demo.documents.turn import Setting, Turn

KIND = "follow_up"
_OTHER_TALK_SHARE, _ASKED_BESIDE_SHARE = 0.35, 0.08
_CHARACTERS_PER_TOKEN, _TOKENS_FOR_SETTING = 2.2, 40

_LEAD = Phrase(
    "{hi|hello|hey|good morning}{,|!|.}",
    "{please |}{remember|remember this|note|keep in mind|do not forget|memorize|note this}:",
    "{please |}{remember|note|keep in mind|do not forget|know} that",
    "{for your information|just so you know|you should know|by the way|listen|i tell you something}{,|:}",
    "i {want|would like} to tell you {something|this}:",
)
_JOINED = (", and ", " and ", ". ", ". ", "; ", ", ")


def make(rng: Random, budget: int) -> Conversation:
    """A conversation in which something told is asked for; a third are several requests of different kinds."""
    if rng.random() < _OTHER_TALK_SHARE:
        return make_several(rng, budget)
    setting = Setting.draw(rng)
    told = _different(rng, (1, 1, 1, 2, 2, 3)[int(rng.random() * 6)])
    turns = [_telling(rng, told, setting.enable_thinking)]
    middle = (2, 2, 2, 2, 2, 2, 0, 1, 3, 3)[int(rng.random() * 10)]
    if len(told) > 1 and middle > 1 and rng.random() < 0.2:  # the last of them is told later
        turns = [Turn(_told(rng, told[:-1]), NOTED)]
        later = int(rng.random() * middle)
    else:
        later = -1
    for place in range(middle):
        turns.append(Turn(_told(rng, told[-1:]), NOTED) if place == later else _short(rng, setting.enable_thinking))
    asked = rng.sample(told, len(told))
    turns.append(_recalled(rng, asked[0]))
    if rng.random() < 0.5:
        turns.extend(_recalled(rng, other) for other in asked[1:])
    return setting.conversation(KIND, turns)


def make_several(rng: Random, budget: int) -> Conversation:
    """2 to 6 requests of different kinds that fit into `budget`, now and then a row of "and what about" questions."""
    setting = Setting.draw(rng)
    count = 2 + int(rng.random() * 5)
    if rng.random() < 0.2:
        return setting.conversation(KIND, facts.chain(rng, min(count, 4)))
    room = (budget - _TOKENS_FOR_SETTING) * _CHARACTERS_PER_TOKEN
    turns: list[Turn] = []
    while len(turns) < count:
        turn = (
            _any(rng, setting.enable_thinking, budget // 3)
            if rng.random() < 0.3
            else _short(rng, setting.enable_thinking)
        )
        room -= len(turn.request) + len(turn.reasoning) + len(turn.answer) + 20
        if room < 0:
            turn = facts.turn(rng)
            count = 0
        turns.append(turn)
    return setting.conversation(KIND, turns)


def _short(rng: Random, thinks: bool) -> Turn:
    draw = rng.random()
    if draw < 0.3:
        return facts.turn(rng)
    if draw < 0.55:
        return arithmetic.turn(rng, thinks)
    if draw < 0.7:
        return counting.turn(rng, 10)
    return copying.turn(rng, 200, 8) if draw < 0.88 else chat.turn(rng)


def _any(rng: Random, thinks: bool, budget: int) -> Turn:
    draw = rng.random()
    if draw < 0.25:
        return json_array.turn(rng, budget, 4)
    if draw < 0.45:
        return renaming.turn(rng)
    return copying.turn(rng, budget, 20) if draw < 0.7 else chat.turn(rng)


def _telling(rng: Random, told: list[Detail], thinks: bool) -> Turn:
    """Something told, and now and then asked behind it, which is then what the reply is about."""
    if rng.random() >= _ASKED_BESIDE_SHARE:
        return Turn(_told(rng, told), NOTED)
    beside = facts.turn(rng) if rng.random() < 0.5 else arithmetic.turn(rng, thinks)
    return Turn(f"{stopped(_told(rng, told))} {upper_first(beside.request)}", beside.answer, beside.reasoning)


def _different(rng: Random, count: int) -> list[Detail]:
    """Details of different subjects; what is told of one does not hold the value of another."""
    found: list[Detail] = []
    while len(found) < count:
        new = detail(rng)
        if not any(_collide(new, other) or _collide(other, new) for other in found):
            found.append(new)
    return found


def _collide(one: Detail, other: Detail) -> bool:
    return one.subject in other.subject or one.value.lower() in other.statement.lower()


def _told(rng: Random, told: list[Detail]) -> str:
    joint = _JOINED[int(rng.random() * len(_JOINED))]
    first, *others = told
    parts = [_capital(other) if joint == ". " else other.statement for other in others]
    lead = _LEAD.write(rng)
    if rng.random() < 0.45 and not any(known.value.lower() in lead for known in told):
        text = upper_first(f"{lead} {_capital(first) if lead[-1] in '!.:' else first.statement}")
    else:
        text = _capital(first) if rng.random() < 0.85 else first.statement
    return joint.join((text, *parts)) + (".", ".", ".", "", "!")[int(rng.random() * 5)]


def _capital(known: Detail) -> str:
    """The statement with a capital first letter, unless that would change the detail."""
    return known.statement if known.statement.startswith(known.value) else upper_first(known.statement)


def _recalled(rng: Random, wanted: Detail) -> Turn:
    request = question(rng, wanted.question) if rng.random() < 0.75 else order(rng, wanted.order)
    return Turn(request, wanted.value)
