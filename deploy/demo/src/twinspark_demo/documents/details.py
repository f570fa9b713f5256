"""Details: what a person tells about themselves and their things, and how it is asked for later."""

from dataclasses import dataclass
from random import Random

from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.topics import DAYS, MONTHS, TOPICS, noun


@dataclass(frozen=True, slots=True)
class Detail:
    """Something told: in a statement without a stop, and in a question or an order that asks for it."""

    subject: str
    value: str
    statement: str
    question: str
    order: str


_VALUE = "\0"  # stands for the value until there is one
_ORDER = Phrase(
    "{tell me|say|tell me again|remind me of|repeat|give me|name} <x>",
    "{tell me|write down|say|repeat} <x>",
    "{think back|go back|look above|look at what i told you|read what i wrote} and {tell me|say|give me|name} <x>",
)
_CLAUSE_ORDER = Phrase(
    "tell me <x>",
    "{tell me again|say|remind me|tell me once more|say again|let me know} <x>",
    "{think back|go back|look above|read what i wrote} and {tell me|say} <x>",
)
_INDIRECT_SHARE = 0.45
_SOMEBODY = "{somebody|someone|my <o>|the <o>|a friend|my boss|my mother|our teacher|a <o>|everybody}"
_INDIRECT = Phrase(
    f"{_SOMEBODY} {{asks|wants to know|asked me|is asking|has to know}} <x>{{.|.|, what do i say?}}",
    f"{_SOMEBODY} {{asks for|needs|asked for|forgot|wants|does not know|cannot remember}} <t>{{.|.|, what is it?}}",
    "i {forgot|have forgotten|cannot remember|do not remember|lost|do not know} <t>{.|, what was it?|, what is it?}",
    "i {forgot|have forgotten|cannot remember|do not remember|do not know} <x>{.|, can you tell me?}",
    "you {still |}{know|remember|recall} <t>, {right|do you not|yes}? {what|which} {is|was} it?",
    "i {told you|mentioned|said|gave you|wrote|named} <t> {earlier|before|above|at the beginning|a while ago}"
    "{, what was it?|. What was it?|, what is it?|, which was it?}",
    "{what|which} {is|was} <t>{ again| then| once more|}?",
    "<t>{?|, please.|, what was it?|, do you know it?|, which one was it?|: what is it?}",
    "{do you|can you|could you} {still |}{know|remember|recall|say|tell me} {<x>|<t>}?",
    "{who knows|does anybody know|does anyone remember|i wonder|i need to know|let me hear} {<x>|<t>}{?|.}",
    "what did i {say|tell you|write|answer} {about|was|is|concerning} <t>?",
    "{earlier|before|at the beginning} i {told you|mentioned|said} {<t>|<x>}{. What was it?|, say it.}",
    "{may|could|can} i {hear|have|see|get} <t>{ again|, please|}?",
    "{for|to} the <o>, {what is <t>|i need <t>|tell me <x>}{?|.}",
)
_CLAUSES = ("what ", "who ", "where ", "when ", "how ", "which ")


def detail(rng: Random) -> Detail:
    """A detail with a value that may be a new word, and is none of those that it is told and asked for with."""
    topic = TOPICS[int(rng.random() * len(TOPICS))]
    subject = topic.subjects[int(rng.random() * len(topic.subjects))]
    wanted = topic.indirect.write(rng, s=subject)
    order = _CLAUSE_ORDER.write(rng, x=wanted) if wanted.startswith(_CLAUSES) else _ORDER.write(rng, x=wanted)
    question = topic.question.write(rng, s=subject)
    if rng.random() < _INDIRECT_SHARE:
        thing = topic.thing.write(rng, s=subject)
        question = _INDIRECT.write(rng, x=wanted, t=thing, o=noun(rng))
    statement = topic.statement.write(rng, s=subject, v=_VALUE)
    value = _VALUE
    while value.lower() in f"{statement} {order} {question}":
        value = topic.makers[int(rng.random() * len(topic.makers))](rng)
    if value in MONTHS:
        statement = statement.replace(" on ", " in ")
    if value in DAYS:
        statement = statement.replace(" in ", " on ")
    return Detail(subject, value, statement.replace(_VALUE, value), question, order)
