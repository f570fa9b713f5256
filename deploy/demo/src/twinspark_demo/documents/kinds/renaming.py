"""Renaming: a short program and a new name for one of its variables; the reply is the program with that name."""

from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.politeness import PLAIN_SHARE, instruction, order, plain, upper_first
from twinspark_demo.documents.program import Program, identifier, program, resembling
from twinspark_demo.documents.turn import Setting, Turn

KIND = "rename"

_VARIABLE = "{the variable |the variable |variable |the name |}"
_WHERE = (
    "{| in {this|the|the following|my} {code|program|script|function|snippet}| in the {code|program|lines} below"
    "| everywhere| throughout| here| wherever it occurs}"
)
_TASK = Phrase(
    f"rename {_VARIABLE}<o> {{to|to|into|as}} <n>{_WHERE}",
    f"rename {_VARIABLE}<o> {{to|to|into|as}} <n>{_WHERE}",
    f"change {_VARIABLE}<o> {{to|into}} <n>{_WHERE}",
    f"replace {_VARIABLE}<o> {{with|by}} <n>{_WHERE}",
    f"{{change|make}} the name of {{the variable |}}<o> {{to|into}} <n>{_WHERE}",
    f"call the variable <o> <n>{{ instead|}}{_WHERE}",
    f"use {{the name |}}<n> {{instead of|for|in place of}} {_VARIABLE}<o>{_WHERE}",
    f"give {{the variable |}}<o> the {{new |}}name <n>{_WHERE}",
    "{write|return|show|give me} {the|this} {code|program} with <o> {renamed to|called|replaced by|changed to} <n>",
    "in {this|the|the following} {code|program|script}, {rename|change} {the variable |}<o> {to|into} <n>",
    f"rename <o> -> <n>{_WHERE}",
    "refactor{| this code| the code}: {rename |}<o> {to|becomes|->} <n>",
    f"substitute <n> for {_VARIABLE}<o>{_WHERE}",
    "update the {code|program} so that <o> is {called|named} <n>",
)
_PLAIN = Phrase(
    f"rename {_VARIABLE}<o> to <n>{_WHERE}",
    "rename <o> to <n>{| in this code| in this program}",
    "rename the variable <o> to <n>{| in this code| in this program| everywhere}",
    "change <o> {to|into} <n>{| in this code| everywhere}",
    "replace <o> {with|by} <n>{| in this code| everywhere}",
)
_STATED = Phrase(
    "{the variable|variable|the name} <o> {should|must|has to|shall} be {called|named|renamed to|changed to} <n>",
    "<o> {should|must|has to} be {called|named|renamed to} <n>{| from now on| everywhere| in this code}",
    "{i want|i would like|i'd like} {the variable |}<o> to be {called|named|renamed to} <n>{| in this code}",
    "the new name of {the variable |}<o> is <n>",
    "the variable <o> needs {a new name|another name}: <n>",
    "{i don't|i do not} like the name <o>, {use|take|make it|write} <n>",
    "<o> -> <n>",
    "let {the variable |}<o> be called <n>",
)
_CODE = Phrase(
    "{here is|this is|look at|take} {my|a|the|this} {program|code|script|snippet|function}",
    "{code|program|my code|python}",
)


def make(rng: Random, budget: int) -> Conversation:
    """One program; `budget` is far from being reached."""
    return Setting.draw(rng).conversation(KIND, (turn(rng),))


def turn(rng: Random) -> Turn:
    """A request to rename one variable."""
    content = program(rng)
    old, new = content.name, _new_name(rng, content)
    mark = ("", "", "", "`", "`", '"', "'")[int(rng.random() * 7)]
    slots = {"o": mark + old + mark, "n": mark + new + mark}
    return Turn(_request(rng, content.called(old), slots), content.called(new))


def _new_name(rng: Random, content: Program) -> str:
    while True:
        name = resembling(rng, content.name) if rng.random() < 0.08 else identifier(rng)
        if name != content.name and name not in content.others:
            return name


def _request(rng: Random, code: str, slots: dict[str, str]) -> str:
    draw = rng.random()
    stated = rng.random() < 0.2
    if rng.random() < 0.25:
        code = ("```\n", "```python\n")[int(rng.random() * 2)] + code + "\n```"
    if draw < 0.6:
        if rng.random() < PLAIN_SHARE:
            task = plain(rng, _PLAIN.write(rng, **slots))
        else:
            task = _stated(rng, slots) if stated else instruction(rng, _TASK.write(rng, **slots))
        return task + (":\n", ":\n", ":\n\n", ".\n", ".\n\n", "\n", "\n\n")[int(rng.random() * 7)] + code
    if stated:
        task = _stated(rng, slots) + ("", ".", "!")[int(rng.random() * 3)]
    else:
        task = order(rng, _TASK.write(rng, **slots))
    if draw < 0.82:
        return code + ("\n\n" if rng.random() < 0.7 else "\n") + task
    return f"{upper_first(_CODE.write(rng))}:\n{code}\n\n{task}"


def _stated(rng: Random, slots: dict[str, str]) -> str:
    """A wish that may begin with the name, whose first letter has to stay as it is."""
    text = _STATED.write(rng, **slots)
    return text if text.startswith(slots["o"]) else upper_first(text)
