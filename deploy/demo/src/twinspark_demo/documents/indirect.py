"""Indirect: requests that somebody passes on: a teacher asks, a quiz wants to know, the homework says."""

from random import Random

from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.politeness import plain

SHARE = 0.2  # of the requests of kinds that have short answers

_SOMEBODY = (
    "{my|my|our|the|his|her} {son|daughter|teacher|sister|brother|uncle|aunt|boss|neighbour|friend|cousin|wife|husband"
    "|mother|father|grandmother|grandfather|colleague|child|pupil|student|customer|kid|examiner}"
)
_SOMEONE = (
    f"{{{_SOMEBODY}|{_SOMEBODY}|{_SOMEBODY}|somebody|someone|a friend of mine|a girl in my class|everybody here}}"
)
_PUZZLE = (
    "{a quiz|a crossword|a game|a puzzle|a test|an exam|my homework|a bet|a riddle|school|a school project|a form"
    "|a worksheet|my lesson}"
)
_QUOTED = Phrase(
    f"{_SOMEONE} {{asks|asks|says|wants to know|asked|asked me|asks me|wonders|just asked|wrote|said}}: <q>",
    "{my homework|the homework|my worksheet|the exercise|the test|the exam|the quiz|the book|the form|the sheet"
    "|the blackboard|the puzzle} {says|says|asks|wants to know|reads}: <q>",
    "{the|my|this} {next |first |last |}question {is|was|reads|goes}: <q>",
    f"{{for|from|in}} {_PUZZLE}: <q>",
    f"{_SOMEONE} {{has a question|wants an answer|wants to know something|wants help}}: <q>",
)
_CLAUSED = Phrase(
    f"{_SOMEONE} {{asks|wants to know|wants to know|asked me|asks me|wonders|needs to know|would like to know"
    "|has to know|does not know|forgot|wants me to say} <c>{.|.|}",
    f"{{for|for|in}} {_PUZZLE}{{,|}} i {{need|need|need to know|have to know|want to know|must know}} <c>{{.|.|}}",
    f"i {{need|need to know|have to know|must know|am asked for|am looking for}} <c> for {_PUZZLE}{{.|.|}}",
    "{can|could|will} {somebody|someone|anybody|anyone|one of you} {tell me|tell me|tell us|say|explain} <c>?",
    "{does|would} {somebody|someone|anybody|anyone} {here |}know <c>?",
    "{i wonder|i am wondering|i was asked|we were asked|we wonder|i cannot remember|i can't remember|we are not sure} "
    "<c>{.|.|}",
    f"{{help me|help us}}, {_SOMEONE} {{wants|wants to know|asks}} <c>{{.|}}",
    "{any idea|any clue} <c>?",
    "tell {my son|my daughter|my friend|the class|us|them|the kids|everybody} <c>{.|}",
)


def indirect(rng: Random, asked: str, clause: str) -> str:
    """A whole message that passes on `asked`, a question on its own, or `clause` ("what the capital of Spain is")."""
    if rng.random() < 0.45:
        return plain(rng, _QUOTED.write(rng, q=asked[:1].upper() + asked[1:] if rng.random() < 0.5 else asked))
    return plain(rng, _CLAUSED.write(rng, c=clause))
