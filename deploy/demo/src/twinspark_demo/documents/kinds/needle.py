"""Needles: filler with sentences that give the codes of names, questions about some of the names behind it."""

from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents import filler
from twinspark_demo.documents.codes_asked import asked
from twinspark_demo.documents.codes_told import Teller
from twinspark_demo.documents.open_text import near
from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.politeness import upper_first
from twinspark_demo.documents.turn import Setting, Turn
from twinspark_demo.documents.words import any_english, code, name

KIND = "needle"
NOTED = "Noted."
MOST_NEEDLES, MANY_NEEDLES, MOST_FURTHER = 40, 33, 8
# Tokens, no fewer than there are: of the beginning, of a code's sentence (short, long), of a question with its answer.
_BEGINNING, _NEEDLE, _LONG_NEEDLE, _FURTHER = 45, 24, 42, 60
_AROUND = 8  # a code costs more than its characters, a turn has marks
_CHARACTERS_PER_TOKEN = 1.95  # of filler
_LEAST_FILLER, _LONG_SHARE = 16, 0.25
_SHORT_NEEDLES_SHARE = 0.5  # of documents: only with short sentences do many codes fit into a short row

_LISTED = ("{}: {}", "- {}: {}", "{} - {}", "{} = {}", "* {} {}")

_INTRODUCTION = Phrase(
    "{read|here is|this is|look at|study|consider} {this|a|the|the following|some} text{| carefully}{:|.}",
    "{remember|learn|keep in mind|memorize} {these codes|the codes|the following codes|the following}{:|.}",
    "{text|document|notes|codes|the text|report}:",
    "{i will|i'll} {ask|need} {for |}{a code|one of the codes} {later|at the end|below|afterwards}.",
    "{read the text and answer the question|answer the question at the end|the question comes at the end}{:|.}",
)
_MARK = Phrase("{question|my question|now the question|so}: ")


def make(rng: Random, budget: int) -> Conversation:
    """1 to 40 codes in filler of log-uniform length within `budget`; several are asked for."""
    codes = _codes(rng, _count(rng, budget))
    needles, room = _needles(rng, codes, budget - _BEGINNING - _FURTHER)
    wanted, *others = rng.sample(list(codes), min(len(codes), 1 + _further(rng)))
    first = asked(rng, wanted, False)
    room += _FURTHER - _tokens(first)
    further: list[Turn] = []
    for other in others:
        turn = Turn(asked(rng, other, True), codes[other])
        if room < _tokens(turn.request):
            break
        room -= _tokens(turn.request)
        further.append(turn)
    text = _text(rng, codes, needles, room)
    turns = _first_turns(rng, text, first, codes[wanted])
    return Setting.draw(rng).conversation(KIND, turns + further, learns_prompt=False)


def _count(rng: Random, budget: int) -> int:
    each = _NEEDLE if rng.random() < _SHORT_NEEDLES_SHARE else _LONG_NEEDLE
    most = max(1, min(MOST_NEEDLES, (budget - _BEGINNING - _FURTHER) // each))
    if most > MANY_NEEDLES and rng.random() < 0.75:
        return MANY_NEEDLES + int(rng.random() * (most - MANY_NEEDLES + 1))
    return 1 + int(rng.random() * most)


def _further(rng: Random) -> int:
    return 0 if rng.random() < 0.08 else 3 + int(rng.random() * (MOST_FURTHER - 2))


def _codes(rng: Random, count: int) -> dict[str, str]:
    """Names with their codes. No name, no code is contained in another, whatever the case of its letters."""
    alike = rng.random() < 0.15
    names: dict[str, str] = {}  # the words by themselves in small letters
    while len(names) < count:
        found = name(rng) if rng.random() < 0.85 else any_english(rng).capitalize()
        if alike and names and rng.random() < 0.4:
            found = near(rng, next(reversed(names))).capitalize()
        if len(found) > 2:
            _add(names, found)
    alike = rng.random() < 0.3
    codes: dict[str, str] = {}
    while len(codes) < count:
        found = code(rng)
        if alike and codes and rng.random() < 0.4:
            found = near(rng, next(reversed(codes.values())))
        if 4 <= len(found) <= 8 and found.lower() not in "\n".join(names):
            _add(codes, found)
    return dict(zip(names.values(), codes.values(), strict=True))


def _add(words: dict[str, str], word: str) -> None:
    """Adds the word, unless it is contained in one of them or contains one."""
    small = word.lower()
    if small not in "\n".join(words) and not any(map(small.__contains__, words)):
        words[small] = word


def _text(rng: Random, codes: dict[str, str], needles: list[str], room: float) -> str:
    """The sentences with the codes at random places of up to `room` tokens of filler."""
    sentences: list[str] = []
    if room > _LEAST_FILLER and rng.random() > 0.06:
        characters = _CHARACTERS_PER_TOKEN * _tokens_of_filler(rng, room)
        people = filler.names(rng, list(codes))
        while characters > 0:
            sentences.append(filler.sentence(rng, people))
            characters -= len(sentences[-1]) + 1
        if characters < 0 and len(sentences) > 1:
            sentences.pop()
    if not sentences and rng.random() < 0.3:
        listed = _LISTED[int(rng.random() * len(_LISTED))]
        return "\n".join(listed.format(*pair) for pair in codes.items())
    places = sorted(int(rng.random() * (len(sentences) + 1)) for _ in needles)
    mixed: list[str] = []
    at = 0
    for place, needle in zip(places, needles, strict=True):
        mixed.extend(sentences[at:place])
        mixed.append(needle)
        at = place
    mixed.extend(sentences[at:])
    return _paragraphs(rng, mixed)


def _tokens_of_filler(rng: Random, room: float) -> float:
    """Log-uniform up to `room`; a share is nearly as long as that, which would be rare otherwise."""
    if rng.random() < _LONG_SHARE:
        return room * (0.6 + 0.4 * rng.random())
    return float(_LEAST_FILLER * (room / _LEAST_FILLER) ** rng.random())


def _needles(rng: Random, codes: dict[str, str], room: float) -> tuple[list[str], float]:
    """A sentence for every code, and the tokens left of `room`; where it is short, the sentences are."""
    teller = Teller(rng, codes.keys())
    needles = []
    left = len(codes)
    for known, secret in codes.items():
        left -= 1
        text = teller.sentence(known, secret)
        if room - _tokens(text) < _NEEDLE * left:
            text = teller.plain(known, secret)
        room -= _tokens(text)
        needles.append(text if text.startswith(secret) else upper_first(text))  # a code keeps its small letters
    return needles, room


def _tokens(text: str) -> float:
    """Of a sentence with a code, or a question with its answer; rather more than there are."""
    return _AROUND + len(text) / _CHARACTERS_PER_TOKEN


def _paragraphs(rng: Random, sentences: list[str]) -> str:
    draw = rng.random()
    if draw < 0.45:
        return " ".join(sentences)
    if draw < 0.6:
        return "\n".join(sentences)
    parts = []
    for sentence in sentences:
        parts += [sentence, "\n\n" if rng.random() < 0.12 else " "]
    return "".join(parts[:-1])


def _first_turns(rng: Random, text: str, asked_for: str, answer: str) -> list[Turn]:
    draw = rng.random()
    lead = (
        upper_first(_INTRODUCTION.write(rng)) + ("\n", "\n\n", " ")[int(rng.random() * 3)] if rng.random() < 0.5 else ""
    )
    if draw < 0.1:
        return [Turn(f"{asked_for}\n\n{lead}{text}", answer)]
    if draw < 0.35:
        return [Turn(lead + text, NOTED), Turn(asked_for, answer)]
    mark = upper_first(_MARK.write(rng)) if rng.random() < 0.25 else ""
    between = ("\n\n", "\n\n", "\n", " ")[int(rng.random() * 4)]
    return [Turn(lead + text + between + mark + asked_for, answer)]
