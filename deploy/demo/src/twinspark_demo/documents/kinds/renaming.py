"""Renaming: a short program and a new name for one of its variables; the reply is the program with that name."""

from collections.abc import Callable
from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.plain_program import plain_program
from twinspark_demo.documents.politeness import instruction, order, plain, upper_first
from twinspark_demo.documents.program import Program, identifier, program, resembling
from twinspark_demo.documents.remarks import SHARE as REMARK_SHARE
from twinspark_demo.documents.remarks import with_remark
from twinspark_demo.documents.turn import Setting, Turn

KIND = "rename"
_PLAIN_PROGRAM_SHARE, _SAME_STYLE_SHARE = 0.6, 0.4
_PLAIN_REQUEST_SHARE, _STATED_SHARE, _TAILED_SHARE = 0.35, 0.35, 0.06

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
    "rename <o> to <n>{|| in this code| in this program}",
    "rename the variable <o> to <n>{|| in this code| in this program| everywhere}",
    "rename the variable <o> to <n>",
    "change <o> {to|into} <n>{| in this code| in this program| everywhere}",
    "replace <o> {with|by} <n>{| in this code| in this program| everywhere}",
    "use <n> instead of <o>{| in this code| in this program| everywhere}",
    "{in this program|in this code}, rename {the variable |}<o> to <n>",
)
_TOO = "{short|long|vague|old|unclear|ugly|odd|strange|hard to read|confusing|general|silly|bad|poor|wrong|misleading}"
_SOMEBODY = (
    "{my boss|my teacher|my friend|my colleague|our team|the reviewer|the linter|the customer|our lead|my brother"
    "|the manual|our style guide}"
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
    # The new name comes first.
    "<n> is a {better|nicer|clearer|shorter|more fitting} name than {the variable |}<o>",
    "<n> {would be|is} {the right|a good|a better} name for {the variable |}<o>{, so use it|, change it|}",
    "{i want|i would like|i'd like|i need} <n> where <o> {stands|is|stands now|is now|is written|occurs}{| now}",
    "{write|put|use|take} <n> {wherever|where|everywhere|every time} <o> {stands|occurs|appears|is used|is written}",
    "<n> {shall|should|must|has to} {stand|be} {where|wherever} <o> {stands|is|is now|stands now}",
    "<n> {replaces|takes the place of|shall replace|should replace} {the variable |}<o>{| everywhere| now}",
    "{i prefer|i like|we prefer|i'd prefer|i would rather have|i would rather read} <n> instead of <o>",
    "{use|take|write|i want|we use|we say} <n> {and not|rather than|instead of|not} <o>{| here| in this program}",
    f"{_SOMEBODY} {{wants|wants to see|asks for|prefers|likes|needs|expects}} <n> {{instead of|in place of}} <o>",
    "{the name |}<n> {is free now|is better|fits better|is clearer}, {use it|take it} {for|instead of} <o>",
    # The old name comes first.
    "<o> is {a bad|a poor|a strange|an unclear|the wrong} name, {call it|name it|use|make it|write} <n>",
    f"<o> is too {_TOO}, {{call it|name it|use|make it|better}} <n>",
    f"the name <o> is {{too|very|so|rather}} {_TOO}, {{call it|name it|use|make it|change it to}} <n>",
    "{i do not|i don't|we do not|we don't} want <o> {any more|anymore|any longer|here}{,|} but <n>",
    "{i do not|i don't} want {to see |to read |}<o> {any more|anymore|again}{,|;} {write|use|put|take} <n>",
    "{not|no longer|never again} <o>{,|} but <n>{| please| everywhere| in this program}",
    f"{_SOMEBODY} {{wants|wants to have|needs}} {{the variable |}}<o> {{renamed to|called|changed to}} <n>",
    f"{_SOMEBODY} {{does not like|hates|complains about|dislikes}} <o>{{,|:}} {{use|write|make it|call it}} <n>",
    "{what|the variable that} {is called|is named} <o> {now |}{shall|should|must} be {called|named} <n>",
    "{where|wherever|everywhere} {it says|i wrote|you see|there is} <o>{,|} {write|put|use|it should say} <n>",
    "{every|each} <o> {becomes|must become|should become|turns into|has to become|is to be} <n>",
    "<o> {becomes|must become|should become|turns into|is now|is called} <n>{| in this code| everywhere}",
    "{from now on|now|today|from today on}{,|} <o> is {called|named} <n>{| in this program| in my code|}",
    "{how does|how would|what does} {this program|the program|this code} look with <o> {called|named|renamed to} <n>",
    "{i|we} {want to rename|have to rename|must change|would like to change} {the variable |}<o> to <n>",
    "{old name|old|from|before}: <o>{,|;} {new name|new|to|after}: <n>",
    "{new name|new|after}: <n>{,|;} {old name|old|before}: <o>",
    "<o> {is taken|is used elsewhere|clashes with another name|means something else}, {so use|so take|use} <n>",
    "<o> => <n>",
)
_CODE = Phrase(
    "{here is|this is|look at|take} {my|a|the|this} {program|code|script|snippet|function}",
    "{code|program|my code|python}",
)
_TAIL = Phrase(
    "{only|just} the {program|code}{|, please}{.|}",
    "{change|touch} nothing else{.|}",
    "{write|return|show|give me} {only |}the {whole |}{program|code}{.|}",
    "{no explanation|nothing else|keep the rest as it is|leave the rest alone|no comments}{|, please}{.|}",
)


def make(rng: Random, budget: int) -> Conversation:
    """One program; `budget` is far from being reached."""
    return Setting.draw(rng).conversation(KIND, (turn(rng),))


def turn(rng: Random) -> Turn:
    """A request to rename one variable."""
    if rng.random() < _PLAIN_PROGRAM_SHARE:
        content, style = plain_program(rng)
        maker = style if rng.random() < _SAME_STYLE_SHARE else identifier
    else:
        content, maker = program(rng), identifier
    old, new = content.name, _new_name(rng, content, maker)
    mark = ("", "", "", "", "`", "`", '"', "'")[int(rng.random() * 8)]
    slots = {"o": mark + old + mark, "n": mark + new + mark}
    return Turn(_request(rng, content.called(old), slots), content.called(new))


def _new_name(rng: Random, content: Program, maker: Callable[[Random], str]) -> str:
    while True:
        name = resembling(rng, content.name) if rng.random() < 0.08 else maker(rng)
        if name != content.name and name not in content.others:
            return name


def _request(rng: Random, code: str, slots: dict[str, str]) -> str:
    draw = rng.random()
    if rng.random() < 0.25:
        code = ("```\n", "```python\n")[int(rng.random() * 2)] + code + "\n```"
    if draw < 0.6:
        request = (
            _task(rng, slots) + (":\n", ":\n", ":\n\n", ".\n", ".\n\n", "\n", "\n\n")[int(rng.random() * 7)] + code
        )
        return f"{request}\n\n{upper_first(_TAIL.write(rng))}" if draw < _TAILED_SHARE else request
    task = _task_behind(rng, slots)
    if draw < 0.82:
        return code + ("\n\n" if rng.random() < 0.7 else "\n") + task
    return f"{upper_first(_CODE.write(rng))}:\n{code}\n\n{task}"


def _task(rng: Random, slots: dict[str, str]) -> str:
    """What stands before the program, without a stop."""
    draw = rng.random()
    if draw < _PLAIN_REQUEST_SHARE:
        return plain(rng, _PLAIN.write(rng, **slots))
    if draw < _PLAIN_REQUEST_SHARE + _STATED_SHARE:
        return _stated(rng, slots)
    return instruction(rng, _TASK.write(rng, **slots))


def _task_behind(rng: Random, slots: dict[str, str]) -> str:
    draw = rng.random()
    stop = ("", ".", ".", "!")[int(rng.random() * 4)]
    if draw < _PLAIN_REQUEST_SHARE:
        return plain(rng, _PLAIN.write(rng, **slots)) + stop
    if draw < _PLAIN_REQUEST_SHARE + _STATED_SHARE:
        return _stated(rng, slots) + stop
    return order(rng, _TASK.write(rng, **slots))


def _stated(rng: Random, slots: dict[str, str]) -> str:
    """A wish that may begin with a name, whose first letter has to stay as it is; sometimes behind a remark."""
    text = _STATED.write(rng, **slots)
    if rng.random() < REMARK_SHARE:
        return upper_first(with_remark(rng, text, may_change_case=False))
    return text if text.startswith((slots["o"], slots["n"])) else upper_first(text)
