"""What people ask about pictures; `_ORDERS` are imperatives without a stop at their end."""

from collections.abc import Mapping
from random import Random

from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.politeness import PLAIN_SHARE, order, plain, question
from twinspark_demo.pictures.picture import Asked

_IN = "{in|in|on|inside} {the|this|my|that} {picture|picture|image|image|photo}"
_MAYBE_IN = f"{{| {_IN}| {_IN}}}"
_SEE = "{do you see|can you see|is shown|is written|do you read|can you read}"
_BOTH = "{the two|both|both} {pictures|images|photos}"

_PLAIN: Mapping[Asked, Phrase] = {
    Asked.NUMBER: Phrase(
        "what number is {this|in the picture|in the image}?", "read the number{.|}", "which number is it?"
    ),
    Asked.COLOUR: Phrase("what colour is {this|it|the shape}?", "name the colour{.|}", "which colour is it?"),
    Asked.COUNT: Phrase("how many shapes are there?", "count the shapes{.|}", "how many shapes do you see?"),
}
_QUESTIONS: Mapping[Asked, Phrase] = {
    Asked.NUMBER: Phrase(
        f"{{what|which}} number {_SEE}{_MAYBE_IN}?",
        f"{{what|which}} number is{_MAYBE_IN}?",
        f"{{what|which}} {{three|3}} digits {{do you see|are written|are shown|are there}}{_MAYBE_IN}?",
        f"{{what|which}} digits {{do you see|can you read|are there}}{_MAYBE_IN}?",
        "{what|which} number {has been|was} {written|drawn|printed} {here|there}?",
        f"{{what|which}} is the number{_MAYBE_IN}?",
        f"what does the number{_MAYBE_IN} say?",
        f"the number{_MAYBE_IN}?",
        f"{{do you know|can you tell|can you say}} which number is{_MAYBE_IN}?",
        f"there is a number{_MAYBE_IN}{{.|:|,}} {{which one is it|which one|what is it}}?",
    ),
    Asked.COLOUR: Phrase(
        f"{{what|which}} {{colour|color}} {{do you see|can you see|is shown|has been used|was used}}{_MAYBE_IN}?",
        f"{{what|which}} {{colour|color}} {{is|has}} the {{shape|figure|thing|object}}{_MAYBE_IN}?",
        f"what is the {{colour|color}} of the {{shape|figure|thing|object}}{_MAYBE_IN}?",
        "{in|with} {what|which} {colour|color} is the {shape|figure|thing} {drawn|painted|filled}?",
        f"the {{colour|color}} of the {{shape|figure|thing}}{_MAYBE_IN}?",
        "{what|which} {colour|color} {does it have|has it|is it}?",
        "{do you know|can you tell|can you say} {what|which} {colour|color} {it|the shape} is?",
        f"there is a {{colour|color}}{_MAYBE_IN}{{.|:|,}} {{which one is it|which one|what is it}}?",
    ),
    Asked.COUNT: Phrase(
        f"how many {{shapes|shapes|figures|things|objects}} {{do you see|can you see|are there|are shown}}{_MAYBE_IN}?",
        f"how many {{shapes|figures|things|objects}} are{_MAYBE_IN}?",
        "how many {shapes|figures|things} {have been|were} {drawn|painted}{| here| there}?",
        f"how many {{shapes|figures|things|objects}} can be {{seen|found|counted}}{_MAYBE_IN}?",
        f"what is the {{number|count}} of {{shapes|figures|objects}}{_MAYBE_IN}?",
        f"the {{number|count}} of {{shapes|figures|things}}{_MAYBE_IN}?",
        "{do you know|can you tell|can you say} how many {shapes|figures|things} {there are|you see}?",
        f"there are {{some|several|a few}} shapes{_MAYBE_IN}{{.|:|,}} how many?",
    ),
}
_ORDERS: Mapping[Asked, Phrase] = {
    Asked.NUMBER: Phrase(
        f"{{read|write|write down|say|name|tell me|give me|type}} the number{_MAYBE_IN}",
        f"{{read|write|say|tell me|type}} the {{digits|three digits|3 digits}}{_MAYBE_IN}",
        f"{{tell me|say}} {{what|which}} number {{you see|is shown|is written}}{_MAYBE_IN}",
        "look {at|into} {the|this|my} {picture|image|photo} and {read|tell me|say|write} the number",
    ),
    Asked.COLOUR: Phrase(
        f"{{say|name|tell me|give me|write}} the {{colour|color}}{_MAYBE_IN}",
        f"{{say|name|tell me|give me|write}} the {{colour|color}} of the {{shape|figure|thing|object}}{_MAYBE_IN}",
        "{tell me|say} {what|which} {colour|color} {you see|it is|it has|the shape has|the shape is}",
        "look {at|into} {the|this|my} {picture|image|photo} and {name|tell me|say|write} the {colour|color}",
    ),
    Asked.COUNT: Phrase(
        f"count {{the|all|all the}} {{shapes|shapes|figures|things|objects}}{_MAYBE_IN}",
        f"{{tell me|say|write}} how many {{shapes|figures|things|objects}} {{you see|there are|are shown}}{_MAYBE_IN}",
        f"{{tell me|say|give me|write}} the {{number|count}} of {{shapes|figures|objects}}{_MAYBE_IN}",
        "look {at|into} {the|this|my} {picture|image|photo} and count the {shapes|figures|things}",
    ),
}
_BOTH_QUESTIONS: Mapping[Asked, Phrase] = {
    Asked.NUMBER: Phrase(
        f"{{what|which}} numbers {{do you see|can you read|are shown|are written|are there}}{{| in {_BOTH}}}?",
        f"{{what|which}} {{two numbers|numbers}} are in {_BOTH}?",
        f"the numbers{{| in {_BOTH}}}, {{in order|one after the other|from first to second}}?",
        "{what|which} number is in the first {picture|image}, and {what|which} in the second?",
    ),
    Asked.COLOUR: Phrase(
        f"{{what|which}} {{colours|colors}} {{do you see|can you see|are shown|are there}}{{| in {_BOTH}}}?",
        f"{{what|which}} {{colours|colors}} have the {{shapes|figures}} in {_BOTH}?",
        f"the {{colours|colors}}{{| in {_BOTH}}}, {{in order|one after the other|from first to second}}?",
        "{what|which} {colour|color} is in the first {picture|image}, and {what|which} in the second?",
    ),
}
_BOTH_ORDERS: Mapping[Asked, Phrase] = {
    Asked.NUMBER: Phrase(
        f"{{read|write|write down|say|name|tell me|give me|type}} {{the|both|the two}} numbers{{| in {_BOTH}}}",
        "{read|write|say|tell me} the number in each {picture|image}{| in order|, in order}",
    ),
    Asked.COLOUR: Phrase(
        f"{{say|name|tell me|give me|write}} {{the|both|the two}} {{colours|colors}}{{| in {_BOTH}}}",
        "{name|say|tell me} the {colour|color} in each {picture|image}{| in order|, in order}",
    ),
}
ASKED_OF_BOTH = tuple(_BOTH_QUESTIONS)


def ask(rng: Random, asked: Asked) -> str:
    """A request for one answer."""
    if rng.random() < PLAIN_SHARE:
        return plain(rng, _PLAIN[asked].write(rng))
    if rng.random() < 0.6:
        return question(rng, _QUESTIONS[asked].write(rng))
    return order(rng, _ORDERS[asked].write(rng))


def ask_both(rng: Random, asked: Asked) -> str:
    """A request for the answers of two pictures, in their order."""
    if rng.random() < 0.6:
        return question(rng, _BOTH_QUESTIONS[asked].write(rng))
    return order(rng, _BOTH_ORDERS[asked].write(rng))
