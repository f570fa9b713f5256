"""Counting: from a up or down to b within 0..99, at most 20 numbers, joined by comma and space."""

from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.politeness import PLAIN_SHARE, order, plain, question
from twinspark_demo.documents.turn import Setting, Turn

KIND = "counting"
MOST_NUMBERS = 20
_LONGEST_SHARE, _LONG_DOWN_SHARE = 0.2, 0.5

_LISTENER = (
    "{the kids|the children|my son|my daughter|my friend|our teacher|the class|we|they|my pupils|the players|i|i}"
    " {want to|want to|would like to|need to|have to|must|like to}"
)
_ALL = "{the numbers|all numbers|all the numbers|every number|every whole number|each whole number|the whole numbers}"
_UP = Phrase(
    "count {|up |forward |upwards |up |}from <a> {to|to|up to|until|till} <b>",
    "count {|up |out loud |upwards |}{to|up to} <b>{,|} {starting|beginning} {at|with|from} <a>",
    "{start|begin} {at|with} <a> and count {|up |upwards |}to <b>",
    "{list|write|write down|give|give me|show|show me|say|name|type} "
    "{the|all|all the} {numbers|whole numbers|integers|numbers} from <a> {to|up to} <b>",
    "{list|write|write down|give me|show me|say|type} the numbers <a> {to|through} <b>",
    "{list|write|say|give me} every number from <a> to <b>{ in order|}",
    "count: <a> to <b>",
    "{start|begin} {at|with|from} <a>{,| and} {go up|go on|count on|keep counting|count|count up} {to|until|till} <b>",
    "{start|begin} {at|with} <a> and {stop|end|finish} {at|with} <b>",
    "count {|up |upwards |}from <a> {until|until you reach|until you are at|and stop at|and end at|all the way to} <b>",
    "go {up |}from <a> to <b>{ in steps of one| one by one| step by step|}",
    "{list|write|say|give me|name|show me} {every|each} {whole number|integer|number} from <a> {to|up to|through} <b>",
    "{let us|let's|let me} hear {you count|the numbers} from <a> to <b>",
)
_DOWN = Phrase(
    "count {down|down|backwards|backward|downwards} from <a> {to|to|down to|until|till} <b>",
    "count {down|backwards} to <b>{,|} {starting|beginning} {at|with|from} <a>",
    "count {from|down from} <a> {down to|to|backwards to} <b>",
    "{start|begin} {at|with} <a> and count {down|backwards|back} to <b>",
    "{list|write|write down|give me|show me|say|type} "
    "{the|all|all the} {numbers|whole numbers|integers|numbers} from <a> {down to|to|backwards to} <b>",
    "{list|write|say|give me} every number from <a> down to <b>",
    "count down: <a> to <b>",
    "{start|begin} {at|with|from} <a>{,| and} {go down|go back|count down|count back|go backwards} {to|until|till} <b>",
    "{start|begin} {at|with} <a> and {stop|end|finish} {at|with} <b>",
    "count {down |backwards |}from <a> {until|until you reach|until you are at|and stop at|all the way down to} <b>",
    "go {down|back|backwards} from <a> to <b>{ in steps of one| one by one| step by step|}",
    "{list|write|say|give me|name|show me} {every|each} {whole number|integer|number} from <a> {down to|to} <b>",
    "{let us|let's|let me} hear {you count|the numbers} from <a> {down to|to} <b>",
)
_QUESTION_UP = Phrase(
    "{what|which} {are|are all} the numbers from <a> {to|up to} <b>?",
    "{what|which} numbers {are there|do you pass|come} from <a> {to|up to} <b>?",
    "{numbers|all numbers|the numbers} from <a> {to|up to} <b>{.||?}",
    "{do you know how to|how do you} count from <a> to <b>?",
    "how does one count from <a> to <b>?",
    "i want to {hear|see|read} the numbers from <a> to <b>{.|}",
    f"{_LISTENER} {{hear|see|read|know|have}} {_ALL} from <a> {{to|up to|until|till}} <b>{{.|.|}}",
    f"{_LISTENER} {{hear|see}} you count from <a> {{to|up to|until|till}} <b>{{.|.|}}",
    "i {need|want} {every|each} {whole number|integer|number} from <a> {to|up to} <b>{.|}",
    "the {first|start} is <a>, the {last|end} is <b>: {count|count, please}{.|}",
)
_QUESTION_DOWN = Phrase(
    "{what|which} {are|are all} the numbers from <a> down to <b>?",
    "{numbers|all numbers|the numbers} from <a> {down to|backwards to} <b>{.||?}",
    "{do you know how to|how do you} count {down|backwards} from <a> to <b>?",
    "a countdown from <a> to <b>{.||, please}",
    "i want to {hear|see|read} the numbers from <a> down to <b>{.|}",
    f"{_LISTENER} {{hear|see|read|know|have}} {_ALL} from <a> {{to|down to|backwards to}} <b>{{.|.|}}",
    f"{_LISTENER} {{hear|see}} you count {{down |backwards |}}from <a> {{to|until|till}} <b>{{.|.|}}",
    "i {need|want} {every|each} {whole number|integer|number} from <a> {down to|to} <b>{.|}",
    "the rocket {starts|leaves}: count from <a> {down to|to} <b>{.|!|}",
)
_PLAIN_UP = Phrase("count from <a> to <b>{|.|.}", "count up from <a> to <b>{|.}", "please count from <a> to <b>{|.}")
_PLAIN_DOWN = Phrase(
    *("count down from <a> to <b>{|.}", "count from <a> to <b>{|.}", "count from <a> down to <b>{|.}"),
    *("count backwards from <a> to <b>{|.}", "please count down from <a> to <b>{|.}"),
)
_TO = Phrase("count {to|up to} <b>")


def make(rng: Random, budget: int) -> Conversation:
    """One request to count; `budget` is far from being reached."""
    setting = Setting.draw(rng)
    return setting.conversation(KIND, (turn(rng),))


def turn(rng: Random, most: int = MOST_NUMBERS) -> Turn:
    """A request to count at most `most` numbers."""
    down = rng.random() < 0.45
    length = _length(rng, most, down)
    low = int(rng.random() * (101 - length))
    if rng.random() < 0.3:
        low = min(low, int(rng.random() * 11))
    numbers = list(range(low, low + length))
    if not down and rng.random() < 0.06:  # everybody counts from one when told no start
        numbers = list(range(1, length + 1))
        return Turn(order(rng, _TO.write(rng, b=str(length))), ", ".join(map(str, numbers)))
    if down:
        numbers.reverse()
    a, b = str(numbers[0]), str(numbers[-1])
    if rng.random() < PLAIN_SHARE:
        request = plain(rng, (_PLAIN_DOWN if down else _PLAIN_UP).write(rng, a=a, b=b))
    elif rng.random() < 0.78:
        request = order(rng, (_DOWN if down else _UP).write(rng, a=a, b=b))
    else:
        request = question(rng, (_QUESTION_DOWN if down else _QUESTION_UP).write(rng, a=a, b=b))
    return Turn(request, ", ".join(map(str, numbers)))


def _length(rng: Random, most: int, down: bool) -> int:
    """How many numbers: often as many as may be; down often more than ten, so that tens are passed on the way."""
    if rng.random() < _LONGEST_SHARE:
        return most
    if down and most > 10 and rng.random() < _LONG_DOWN_SHARE:
        return 11 + int(rng.random() * (most - 10))
    length = 1 + int(rng.random() * most)
    return most if length == 1 and rng.random() < 0.8 else length
