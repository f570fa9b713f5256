"""Needles: filler with sentences that give the codes of names, questions about some of the names behind it."""

from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents import filler
from twinspark_demo.documents.open_text import near
from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.politeness import PLAIN_SHARE, order, plain, question, upper_first
from twinspark_demo.documents.turn import Setting, Turn
from twinspark_demo.documents.words import code, name

KIND = "needle"
NOTED = "Noted."
MOST_NEEDLES, MANY_NEEDLES, MOST_FURTHER = 40, 33, 8
# Tokens, no fewer than there are: of the beginning, of a code's sentence, of a question with its answer.
_BEGINNING, _NEEDLE, _FURTHER = 45, 24, 30
_CHARACTERS_PER_TOKEN = 1.95  # of filler
_LEAST_FILLER, _LONG_SHARE = 16, 0.15

_CODE = "{code|code|code|code|secret code|access code|pass code}"
_SENTENCES = (
    Phrase("the code of <n> is <c>."),
    Phrase("the code of <n> is <c>."),
    Phrase(f"the {_CODE} of <n> is <c>."),
    Phrase("<n>'s code is <c>."),
    Phrase(f"the {_CODE} for <n> is <c>."),
    Phrase("<n> has the code <c>."),
    Phrase("<c> is the code of <n>."),
    Phrase("for <n> the code is <c>."),
    Phrase("<n> uses {the code|code} <c>."),
    Phrase("{remember|note|do not forget} that {<n>'s code is|the code of <n> is|<n> has the code} <c>."),
    Phrase("code of <n>: <c>."),
    Phrase("<n>: <c>."),
    Phrase("<n> has been given the code <c>."),
    Phrase("{the code|code} <c> belongs to <n>."),
    Phrase("the code that {belongs to <n>|<n> uses|<n> was given|opens <n>'s door} is <c>."),
    Phrase("<n> was {given|assigned|sent} the code <c>."),
    Phrase("{to <n> belongs|<n> owns|<n> got|<n> chose} the code <c>."),
    Phrase("{note|important|by the way}: {the code of <n> is|<n>'s code is|<n> has code} <c>."),
    Phrase("{somebody said|it is known|we know} that <n> has the code <c>."),
)
_LISTED = ("{}: {}", "- {}: {}", "{} - {}", "{} = {}", "* {} {}")

_QUESTION = Phrase(
    f"{{what is|what's|what was}} the {_CODE} {{of|of|for|that belongs to}} <n>?",
    "{what is|what's} <n>'s code?",
    f"{{which|what}} {_CODE} {{belongs to <n>|does <n> have|does <n> use|was given to <n>|is <n>'s|has <n>}}?",
    "{do you know|do you remember|can you find|can you see} {the code of <n>|<n>'s code}?",
    "{according to the text|in the text|in the text above}, {what is the code of <n>|which code does <n> have}?",
    "{the code of|the code for|code of|code for} <n>{?|?|:|.}",
    "<n>'s code{?|?|:|, please.}",
    "{i need|i forgot|i want|i am looking for} {the code of <n>|<n>'s code|the code for <n>}{.|}",
    "what code is {given for|assigned to|written for|said to belong to} <n>?",
)
_ORDER = Phrase(
    "{tell me|give me|say|find|find me|look up|write|name|return|state} {the code of|the code for} <n>{| in the text}",
    "{tell me|give me|say|find|look up|return} <n>'s code",
    "{tell me|say|find out} {which code belongs to <n>|which code <n> has|what the code of <n> is}",
    "answer with the code of <n>",
)
_PLAIN = Phrase(
    *(
        "what is the code of <n>?",
        "what is the code of <n>?",
        "what is the code for <n>?",
        "which code belongs to <n>?",
    ),
    *("what is <n>'s code?", "which code does <n> have?", "tell me the code of <n>{.|}", "give me the code of <n>{.|}"),
    *("what code does <n> have?", "what is the code that belongs to <n>?", "code of <n>?"),
)
_SHORT = Phrase(
    "{and|and|what about|and what about|how about|and for|and of|now} <n>{?|?|}", "<n>?", "and {<n>'s|<n>'s code}?"
)
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
    known = list(codes)
    further = min(len(known) - 1, (budget - _BEGINNING - _NEEDLE * len(known)) // _FURTHER, _further(rng))
    asked = rng.sample(known, 1 + max(0, further))
    room = budget - _BEGINNING - _NEEDLE * len(known) - _FURTHER * len(asked)
    text = _text(rng, codes, room)
    turns = _first_turns(rng, text, asked[0], codes[asked[0]])
    turns += [Turn(_asked(rng, wanted, True), codes[wanted]) for wanted in asked[1:]]
    return Setting.draw(rng).conversation(KIND, turns, learns_prompt=False)


def _count(rng: Random, budget: int) -> int:
    most = max(1, min(MOST_NEEDLES, (budget - _BEGINNING - _FURTHER) // _NEEDLE))
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
        found = name(rng)
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


def _text(rng: Random, codes: dict[str, str], room: int) -> str:
    """The sentences with the codes at random places of up to `room` tokens of filler."""
    needles = _needles(rng, codes)
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


def _tokens_of_filler(rng: Random, room: int) -> float:
    """Log-uniform up to `room`; a share is nearly as long as that, which would be rare otherwise."""
    if rng.random() < _LONG_SHARE:
        return room * (0.6 + 0.4 * rng.random())
    return float(_LEAST_FILLER * (room / _LEAST_FILLER) ** rng.random())


def _needles(rng: Random, codes: dict[str, str]) -> list[str]:
    own = _SENTENCES[int(rng.random() * len(_SENTENCES))] if rng.random() < 0.45 else None
    needles = []
    for known, secret in codes.items():
        phrase = own or _SENTENCES[int(rng.random() * len(_SENTENCES))]
        text = phrase.write(rng, n=known, c=secret)
        needles.append(text if text.startswith(secret) else upper_first(text))  # a code keeps its small letters
    return needles


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


def _first_turns(rng: Random, text: str, wanted: str, answer: str) -> list[Turn]:
    draw = rng.random()
    lead = (
        upper_first(_INTRODUCTION.write(rng)) + ("\n", "\n\n", " ")[int(rng.random() * 3)] if rng.random() < 0.5 else ""
    )
    if draw < 0.1:
        return [Turn(f"{_asked(rng, wanted, False)}\n\n{lead}{text}", answer)]
    if draw < 0.35:
        return [Turn(lead + text, NOTED), Turn(_asked(rng, wanted, False), answer)]
    mark = upper_first(_MARK.write(rng)) if rng.random() < 0.25 else ""
    between = ("\n\n", "\n\n", "\n", " ")[int(rng.random() * 4)]
    return [Turn(lead + text + between + mark + _asked(rng, wanted, False), answer)]


def _asked(rng: Random, wanted: str, short: bool) -> str:
    """A question for the code; a short one leans on the question before."""
    if rng.random() < PLAIN_SHARE:
        return plain(rng, _PLAIN.write(rng, n=wanted))
    draw = rng.random()
    if short and draw < 0.4:
        return upper_first(_SHORT.write(rng, n=wanted))
    if draw < 0.75:
        text = _QUESTION.write(rng, n=wanted)
        return upper_first(text) if short else question(rng, text)
    return order(rng, _ORDER.write(rng, n=wanted))
