"""Arithmetic: a op b with one to three digits, thought out column by column, answered by the number alone."""

from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.indirect import SHARE as INDIRECT_SHARE
from twinspark_demo.documents.indirect import indirect
from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.politeness import PLAIN_SHARE, order, plain, question
from twinspark_demo.documents.turn import Setting, Turn

KIND = "arithmetic"
_SMALL_SHARE, _LARGE_SHARE = 0.15, 0.03
_STANDING_SHARE = 0.08

_EXPRESSION = {
    "+": Phrase("<a> + <b>", "<a> + <b>", "<a>+<b>", "<a> plus <b>", "<a> plus <b>", "<a> added to <b>"),
    "-": Phrase(
        *("<a> - <b>", "<a> - <b>", "<a>-<b>", "<a> minus <b>", "<a> minus <b>"),
        *("<a> take away <b>", "<a> less <b>", "<a> \u2212 <b>"),
    ),
    "*": Phrase(
        *("<a> x <b>", "<a>x<b>", "<a> * <b>", "<a>*<b>", "<a> \u00d7 <b>", "<a>\u00d7<b>"),
        *("<a> times <b>", "<a> times <b>", "<a> multiplied by <b>", "<a> X <b>"),
    ),
}
_NOUN = {
    "+": Phrase("the {sum|total} of <a> and <b>"),
    "-": Phrase("the {difference|difference} between <a> and <b>", "the difference of <a> and <b>"),
    "*": Phrase("the product of <a> and <b>"),
}
_ORDER = {
    "+": Phrase("add <a> and <b>", "add <b> to <a>", "sum <a> and <b>", "add up <a> and <b>", "add <a> + <b>"),
    "-": Phrase("subtract <b> from <a>", "take <b> {away |}from <a>", "take <a> and subtract <b>"),
    "*": Phrase("multiply <a> by <b>", "multiply <a> {and|with} <b>", "multiply <a> times <b>"),
}
_QUESTION = Phrase(
    "{what is|what's|what is|how much is|what's|what would be} <x>{?|?|?|}",
    "<x>{?|=|=?| =| = ?||:| is| equals| equals what?| is what?| makes?| = what?| gives}",
    "{what is|what's} the {result|answer|value|solution} of <x>{?|}",
    "{what do you get|what is the result|what comes out} {if|when} you {compute|calculate|evaluate} <x>{?|}",
    "<x> is how much{?|}",
    "{what is|what's|how much is} <x> {in|written in|as} {numbers|digits|figures|a number}{?|}",
    "{what|how much|which number} {comes out|do i get|does it show|is shown} {if|when} {i|somebody|you} "
    "{type|enter|put} <x> into {a|my|the} {calculator|pocket calculator|machine|computer}?",
    "do you know what <x> is?",
    "{how much|what} {do|does} <x> {make|give|equal|come to}?",
    "{i need|i want|give me} {the result of |the answer to |the value of |}<x>{.|}",
)
_TASK = Phrase(
    "{compute|calculate|work out|evaluate|solve|find|determine|do|figure out} <x>{||| for me}",
    "{compute|calculate|work out|find|determine} the {result|value} of <x>",
    "{compute|calculate|solve|evaluate|work out}: <x>",
    "{compute|calculate|solve|work out} {this|the following|the expression|the problem}: <x>",
    "tell me {what <x> is|the result of <x>|the answer to <x>|how much <x> is|<x>}",
    "give {me |}{the result of|the answer to} <x>",
)
_PLAIN = Phrase(
    *("<x>", "<x>?", "<x> =", "<x>=?", "<x> = ?", "what is <x>?", "what is <x>?", "what's <x>?", "how much is <x>?"),
    *(
        "compute <x>{|.}",
        "compute <x>",
        "calculate <x>{|.}",
        "compute: <x>",
        "calculate: <x>",
        "solve <x>",
        "please compute <x>{|.}",
    ),
)
_STANDING = Phrase(  # somewhere, with words behind it
    "{the|this|our} {next |last |first |second |}{task|problem|line|example|question} {on|in|from} {my sheet"
    "|the book|page two|the wall|my paper|the screen|the test|the lesson} {is|is|was|reads|goes} <x>{,|;} {and|but} "
    "{i|we|my friends} {do not know it|cannot do it|cannot do this|have no idea|need help|got stuck"
    "|do not know the answer|must know the answer|forgot how it works|need the answer|want to be sure}{.|.|}",
    "{i|we|my brothers} {have to|had to|must|should|need to|try to} {do|solve|work out|calculate|compute} "
    "<x>{| for school| today| before noon| in my head| for a test}{, but| and|, and| but} {i|we} {cannot"
    "|do not know how|need help|got stuck|want to check it|have no paper|have no calculator|forgot how}{.|.|}",
    "<x> {is|was} {the task|my task|the problem|what i have to solve|what we had to do|on the test|the question}{."
    "|, help me.|, what is the answer?|, what is it?|}",
    "{i|we|they} {got|had|wrote|have} <x> {in|on} {the test|my homework|a quiz|my notes}{. what is it?"
    "|. what is the answer?|, what comes out?|, how much is it?|. is it hard? tell me the answer.}",
    "{there is|it says|here stands|i see} <x> {on|in} {the board|my book|this sheet|the exam}{, please solve it."
    "|. solve it.|, what is the result?|. what is it?|}",
    "{check|a check|a quick one|a test|mental arithmetic|number puzzle}{:|,|.} {what is <x>?"
    "|<x>, how much is it?|<x> gives what?|how much do <x> make?|<x>{?|}}",
)
_QUOTED = Phrase("what is <x>?", "<x>?", "what's <x>?", "how much is <x>?", "<x>", "<x> equals what?", "<x> is what?")
_CLAUSE = Phrase(
    *("what <x> is", "what <x> is", "how much <x> is", "what <x> equals", "what <x> makes", "what is <x>"),
    *("the result of <x>", "the answer to <x>", "the value of <x>"),
)
_GOAL = Phrase(
    "what {do you get|is the result|comes out|is it} {if|when} you <x>?", "<x>: what {is the result|do you get}?"
)


def make(rng: Random, budget: int) -> Conversation:
    """One problem; `budget` is far from being reached."""
    setting = Setting.draw(rng)
    return setting.conversation(KIND, (turn(rng, setting.enable_thinking),))


def turn(rng: Random, thinks: bool) -> Turn:
    """A problem with its steps; without thinking none that needs more than two columns of plus or minus."""
    operation = "+-*"[int(rng.random() * 3)]
    a, b = _operands(rng, operation, thinks)
    result = {"+": a + b, "-": a - b, "*": a * b}[operation]
    reasoning = ""
    if thinks:
        reasoning = {"+": _sum_steps, "-": _difference_steps, "*": _product_steps}[operation](a, b)
    return Turn(_request(rng, operation, a, b), str(result), reasoning)


def _operands(rng: Random, operation: str, thinks: bool) -> tuple[int, int]:
    draw = rng.random()
    if draw < _SMALL_SHARE or (not thinks and operation == "*"):
        first, second = ((10, 10), (10, 100), (100, 10))[int(rng.random() * 3)]
        if not thinks and operation == "*":
            first = second = 10
        return int(rng.random() * first), int(rng.random() * second)
    if thinks and operation != "*" and draw > 1 - _LARGE_SHARE:
        return int(rng.random() * 1000), int(rng.random() * 1000)
    return 10 + int(rng.random() * 90), 10 + int(rng.random() * 90)


def _request(rng: Random, operation: str, a: int, b: int) -> str:
    slots = {"a": str(a), "b": str(b)}
    if rng.random() < PLAIN_SHARE:
        if rng.random() < 0.2:
            return plain(rng, _ORDER[operation].write(rng, **slots) + ("." if rng.random() < 0.5 else ""))
        return plain(rng, _PLAIN.write(rng, x=_EXPRESSION[operation].write(rng, **slots)))
    if rng.random() < INDIRECT_SHARE / (1 - PLAIN_SHARE):
        x = _EXPRESSION[operation].write(rng, **slots)
        return indirect(rng, _QUOTED.write(rng, x=x), _CLAUSE.write(rng, x=x))
    if rng.random() < _STANDING_SHARE / (1 - PLAIN_SHARE - INDIRECT_SHARE):
        return plain(rng, _STANDING.write(rng, x=_EXPRESSION[operation].write(rng, **slots)))
    draw = rng.random()
    if draw < 0.16:
        task = _ORDER[operation].write(rng, **slots)
        if rng.random() < 0.3:
            return question(rng, _GOAL.write(rng, x=task))
        return order(rng, task).replace("!", ".")  # 12! is another number
    # The difference of a smaller and a larger number has two readings.
    noun = draw < 0.28 and not (operation == "-" and a < b)
    x = (_NOUN if noun else _EXPRESSION)[operation].write(rng, **slots)
    if rng.random() < 0.4:
        return order(rng, _TASK.write(rng, x=x)).replace("!", ".")
    return question(rng, _QUESTION.write(rng, x=x)).replace("!", ".")


def _columns(a: int, b: int) -> list[tuple[int, int]]:
    """The digits of both from the right, the shorter number filled with zeros."""
    columns = []
    while True:
        columns.append((a % 10, b % 10))
        a, b = a // 10, b // 10
        if not a and not b:
            return columns


def _sum_steps(a: int, b: int) -> str:
    """7+5=12, 4+8+1=13 for 47 + 85: the carry is the last summand."""
    steps, carry = [], 0
    for upper, lower in _columns(a, b):
        total = upper + lower + carry
        steps.append(f"{upper}+{lower}{'+1' if carry else ''}={total}")
        carry = total // 10
    return ", ".join(steps)


def _difference_steps(a: int, b: int) -> str:
    """85>47, 15-7=8, 8-1-4=3 for 85 - 47: compared first, the borrowed one is taken off before the lower digit."""
    head = f"{a}{'<' if a < b else '>' if a > b else '='}{b}"
    if a < b:
        a, b = b, a
        head += f", {a}-{b}: "
    else:
        head += ", "
    steps, borrow = [], 0
    for upper, lower in _columns(a, b):
        lent = upper - borrow < lower
        top = upper + 10 * lent
        steps.append(f"{top}{'-1' if borrow else ''}-{lower}={top - borrow - lower}")
        borrow = int(lent)
    return head + ", ".join(steps)


def _product_steps(a: int, b: int) -> str:
    """7*2=14, 4*2+1=9, 47*2=94; 7*1=7, 4*1=4, 47*10=470; 94+470: 4+0=4, 9+7=16, 0+4+1=5 for 47 x 12."""
    if b < 10:
        return _digit_steps(a, b)
    if a < 10:
        return _digit_steps(b, a)
    units, tens = b % 10, b // 10
    first = f"{_digit_steps(a, units)}, {a}*{units}={a * units}"
    second = f"{_digit_steps(a, tens)}, {a}*{tens * 10}={a * tens * 10}"
    return f"{first}; {second}; {a * units}+{a * tens * 10}: {_sum_steps(a * units, a * tens * 10)}"


def _digit_steps(number: int, digit: int) -> str:
    """7*8=56, 4*8+5=37 for 47 x 8."""
    steps, carry = [], 0
    for upper, _ in _columns(number, 0):
        total = upper * digit + carry
        steps.append(f"{upper}*{digit}{f'+{carry}' if carry else ''}={total}")
        carry = total // 10
    return ", ".join(steps)
