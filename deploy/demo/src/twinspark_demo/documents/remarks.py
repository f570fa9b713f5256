"""Remarks: what people say around a request that does not belong to it, so that the model learns to look past it."""

from random import Random

from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.words import ADJECTIVES, NOUNS

SHARE = 0.1  # of requests

_REMARK = Phrase(
    "i {lost|forgot|like|hate|need|bought|found|sold|broke|miss} {my|a|the|this|our} <noun>",
    "{my|our|the|this} <noun> {is|was|looks|seems|became} {very |so ||} <adjective>",
    "{my|our} {friend|brother|sister|father|mother|uncle|boss|teacher|neighbour|colleague} {wants to know|asked me|"
    "needs it|is waiting|does not know|told me to ask|has a <noun>}",
    "{it is|i am} {late|early|tired|busy|bored|in a hurry|new here|not sure|at work|at school|on the train}",
    "{we are|i am} {playing|doing homework|writing a book|learning|making a list|testing this|looking for a <noun>}",
    "{this|it} is {for school|for work|important|urgent|easy|a test|for a friend|about a <noun>|not about a <noun>}",
    "the <noun> {does not work|is gone|has arrived|costs a lot|needs it|needs a <noun>|is in the <other>}",
    "{yesterday|today|last week|this morning} {i|we|they} {saw|had|met|made} a {<adjective> |}<noun>",
    "i am {a|the|your} {<adjective> |}<noun>",
    "{i|we} {work|live|sit|stay} {in|near|with} {a|the|my} {<adjective> |}<noun>",
    "my name is {Ana|Tom|Mia|Ben|Paul|Lena|Sam|Nina} and i {like|sell|draw|repair} <noun>s",
)
_AFTER = Phrase(
    "it is for {a friend|my boss|work|school|my mother|a <noun>|my <noun>|the <noun>|a game|us all}",
    "{i am|we are} {in a hurry|late|waiting|in the <noun>|at the <noun>|very curious|not at home|tired}",
    "{that|this} is {important|urgent|all|for the <noun>|all for today|about a <noun>|a <adjective> <noun>}",
    "{i|we} {need it for|lost|forgot|like} the <noun>",
    "{take your time|be quick|it is not urgent|i will wait|no hurry|i count on you|i am sure you can|that is all i "
    "need}",
    "my <noun> {is <adjective>|is waiting|needs it|wants it}",
)
_JOINTS = (". ", ". ", ". ", "! ", ".\n", "... ", ", so ", ", and ", ", but ", ", therefore ", "; ")
_WITHIN = ",;"


def remark(rng: Random) -> str:
    """A sentence without a stop, in lower case."""
    noun, other = (NOUNS[int(rng.random() * len(NOUNS))] for _ in range(2))
    adjective = ADJECTIVES[int(rng.random() * len(ADJECTIVES))]
    return _REMARK.write(rng, noun=noun, other=other, adjective=adjective)


def with_remark(rng: Random, text: str, *, may_change_case: bool) -> str:
    """`text` behind a remark; behind a stop it may get a capital first letter."""
    joint = _JOINTS[int(rng.random() * (len(_JOINTS) if may_change_case else 6))]
    starts = joint[0] not in _WITHIN and may_change_case and rng.random() < 0.8
    return remark(rng) + joint + (text[:1].upper() + text[1:] if starts else text)


def with_remark_behind(rng: Random, text: str) -> str:
    """`text` with a sentence behind it that asks nothing."""
    noun = NOUNS[int(rng.random() * len(NOUNS))]
    adjective = ADJECTIVES[int(rng.random() * len(ADJECTIVES))]
    said = _AFTER.write(rng, noun=noun, adjective=adjective)
    stop = "" if text[-1] in ".?!" else "."
    return f"{text}{stop} {said[0].upper()}{said[1:]}" + (".", ".", "!", "")[int(rng.random() * 4)]
