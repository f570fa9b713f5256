"""Details: what a person tells about themselves and their things, and how it is asked for later."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.words import NOUNS, code, name, pseudo_word
from twinspark_demo.knowledge import CAPITALS, COLOURS

_CITIES = tuple(CAPITALS.values())
_COLOURS = tuple(dict.fromkeys(COLOURS.values()))
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_PROFESSIONS = (
    *("teacher", "baker", "pilot", "farmer", "nurse", "doctor"),
    *("painter", "lawyer", "driver", "cook", "singer", "tailor"),
    *("plumber", "judge", "gardener", "waiter", "clerk", "sailor"),
    *("dancer", "writer", "dentist", "carpenter", "butcher"),
)

Maker = Callable[[Random], str]


@dataclass(frozen=True, slots=True)
class Detail:
    """Something told: in a statement without a stop, and in a question or an order that asks for it."""

    subject: str
    value: str
    statement: str
    question: str
    order: str


def _noun(rng: Random) -> str:
    return NOUNS[int(rng.random() * len(NOUNS))]


def _any_name(rng: Random) -> str:
    return name(rng) if rng.random() < 0.9 else pseudo_word(rng)


def _city(rng: Random) -> str:
    return _CITIES[int(rng.random() * len(_CITIES))] if rng.random() < 0.5 else name(rng)


def _colour(rng: Random) -> str:
    return _COLOURS[int(rng.random() * len(_COLOURS))]


def _number(rng: Random) -> str:
    return str(1 + int(rng.random() * (99 if rng.random() < 0.6 else 9999)))


def _room(rng: Random) -> str:
    number = str(1 + int(rng.random() * 400))
    letter = "ABCDEFGHKLMN"[int(rng.random() * 12)]
    return (number, letter + number, letter + number, number + letter)[int(rng.random() * 4)]


def _day(rng: Random) -> str:
    return _DAYS[int(rng.random() * 7)]


def _month(rng: Random) -> str:
    return _MONTHS[int(rng.random() * 12)]


def _profession(rng: Random) -> str:
    return _PROFESSIONS[int(rng.random() * len(_PROFESSIONS))]


def _age(rng: Random) -> str:
    return str(1 + int(rng.random() * 99))


def _secret(rng: Random) -> str:
    return code(rng) if rng.random() < 0.6 else (_noun, pseudo_word)[int(rng.random() * 2)](rng)


@dataclass(frozen=True, slots=True)
class _Topic:
    """Subjects that are told and asked for in the same words."""

    subjects: tuple[str, ...]
    makers: tuple[Maker, ...]
    statement: Phrase
    question: Phrase  # the orders are made of its indirect form
    indirect: Phrase


_TOPICS = (
    _Topic(
        ("name",),
        (_any_name,),
        Phrase(
            "my name is <v>", "my name is <v>", "i am <v>", "i'm called <v>", "they call me <v>", "you can call me <v>"
        ),
        Phrase(
            "what is my name?", "what's my name?", "who am i?", "what am i called?", "do you {know|remember} my name?"
        ),
        Phrase("my name", "what my name is", "who i am"),
    ),
    _Topic(
        (
            *("dog", "cat", "horse", "rabbit", "parrot", "hamster", "goldfish"),
            *("snake", "pony", "turtle", "bird", "pet", "ship", "boat"),
        ),
        (_any_name,),
        Phrase(
            "my <s> is {called|named} <v>",
            "the name of my <s> is <v>",
            "i have a <s> {called|named} <v>",
            "my <s>'s name is <v>",
            "i call my <s> <v>",
        ),
        Phrase(
            "what is my <s> called?",
            "what is the name of my <s>?",
            "{what is|what's} my <s>'s name?",
            "how is my <s> called?",
            "what do i call my <s>?",
            "do you {know|remember} {the name of my <s>|what my <s> is called}?",
        ),
        Phrase("{the name of my <s>|my <s>'s name|what my <s> is called}"),
    ),
    _Topic(
        (
            *("brother", "sister", "friend", "teacher", "boss", "son", "daughter", "neighbor"),
            *("uncle", "aunt", "cousin", "doctor", "mother", "father", "wife", "husband"),
            *("best friend", "dentist", "coach", "team", "company", "school"),
        ),
        (_any_name,),
        Phrase(
            "my <s> is {called|named} <v>",
            "my <s>'s name is <v>",
            "the name of my <s> is <v>",
            "my <s> is <v>",
        ),
        Phrase(
            "what is my <s> called?",
            "what is the name of my <s>?",
            "{what is|what's} my <s>'s name?",
            "what name does my <s> have?",
            "do you {know|remember} my <s>'s name?",
        ),
        Phrase("{the name of my <s>|my <s>'s name|what my <s> is called}"),
    ),
    _Topic(
        ("city",),
        (_city,),
        Phrase(
            "i live in <v>",
            "i live in <v>",
            "my {home|city|town} is <v>",
            "my home is in <v>",
            "i live in the city of <v>",
        ),
        Phrase(
            *("where do i live?", "where do i live?", "which city do i live in?", "what city do i live in?"),
            *(
                "where is my home?",
                "what is my city?",
                "in which city do i live?",
                "do you {know|remember} where i live?",
            ),
        ),
        Phrase("{where i live|which city i live in|my city|the city where i live}"),
    ),
    _Topic(
        ("birth",),
        (_city,),
        Phrase("i {come from|am from|was born in} <v>", "i'm from <v>"),
        Phrase("where {do i come|am i} from?", "where was i born?", "do you {know|remember} where i {am|come} from?"),
        Phrase("{where i am from|where i come from|where i was born}"),
    ),
    _Topic(
        ("work",),
        (_city,),
        Phrase("i work in <v>", "my office is in <v>", "i have my office in <v>"),
        Phrase(
            "where do i work?",
            "where is my office?",
            "in which city do i work?",
            "do you {know|remember} where i work?",
        ),
        Phrase("{where i work|where my office is|which city i work in}"),
    ),
    _Topic(
        ("colour", "color"),
        (_colour,),
        Phrase(
            "my favourite <s> is <v>",
            "my favorite <s> is <v>",
            "the <s> i like {best|most} is <v>",
            "i {love|like} the <s> <v>",
        ),
        Phrase(
            "what is my {favourite|favorite} <s>?",
            "{which|what} <s> do i {like|love|prefer}{| best| most}?",
            "do you {know|remember} my {favourite|favorite} <s>?",
        ),
        Phrase("{my favourite <s>|my favorite <s>|which <s> i like best}"),
    ),
    _Topic(
        ("number", "lucky number"),
        (_number,),
        Phrase("my favourite <s> is <v>", "my favorite <s> is <v>", "my <s> is <v>"),
        Phrase("what is my {favourite |favorite |}<s>?", "{which|what} is my <s>?", "do you {know|remember} my <s>?"),
        Phrase("{my <s>|my favourite <s>|what my <s> is}"),
    ),
    _Topic(
        (
            *("food", "animal", "fruit", "drink", "flower", "word", "game"),
            *("sport", "season", "tree", "instrument", "toy", "subject"),
        ),
        (_noun, _noun, pseudo_word, name),
        Phrase(
            "my {favourite|favorite} <s> is <v>",
            "the <s> that i like {best|most} is <v>",
            "of all, my {favourite|favorite} <s> is <v>",
        ),
        Phrase(
            "what is my {favourite|favorite} <s>?",
            "{which|what} <s> do i like {best|most}?",
            "do you {know|remember} my {favourite|favorite} <s>?",
        ),
        Phrase("{my favourite <s>|my favorite <s>|which <s> i like best}"),
    ),
    _Topic(
        (
            *("password", "code", "key word", "account", "user name", "order number", "locker code"),
            *("ticket", "license plate", "login", "secret word", "nickname", "customer number", "code word"),
        ),
        (_secret,),
        Phrase("my <s> is <v>", "my <s> is <v>", "the <s> is <v>", "<v> is my <s>", "i use the <s> <v>"),
        Phrase(
            "{what is|what's|what was} {my|my|the} <s>?",
            "{which|what} <s> do i {have|use}?",
            "do you {know|remember} my <s>?",
        ),
        Phrase("{my <s>|what my <s> is|the <s>}"),
    ),
    _Topic(
        (
            *("meeting", "party", "lesson", "exam", "interview", "class"),
            *("concert", "conference", "talk", "workshop", "lecture", "course"),
        ),
        (_room, _room, name),
        Phrase(
            "{the|my|our} <s> is in room <v>",
            "{the|our} <s> takes place in room <v>",
            "room <v> is where {the|my} <s> is",
        ),
        Phrase(
            "{in which room|in what room} is the <s>?",
            "where is {the|my} <s>?",
            "{which|what} room is the <s> in?",
            "what is the room of the <s>?",
            "do you {know|remember} the room of the <s>?",
        ),
        Phrase("{the room of the <s>|which room the <s> is in|where the <s> is}"),
    ),
    _Topic(
        ("room", "seat", "house", "flat", "locker", "desk", "table", "gate", "track"),
        (_room, _number),
        Phrase("my <s> number is <v>", "i have <s> number <v>", "my <s> is number <v>", "the number of my <s> is <v>"),
        Phrase("what is my <s> number?", "{which|what} <s> number do i have?", "what is the number of my <s>?"),
        Phrase("{my <s> number|the number of my <s>|which <s> number i have}"),
    ),
    _Topic(
        ("birthday", "appointment", "holiday", "wedding", "trip", "deadline"),
        (_day, _month),
        Phrase("my <s> is {in|on} <v>", "my <s> will be {in|on} <v>", "i have my <s> {in|on} <v>"),
        Phrase("when is my <s>?", "when will my <s> be?", "{when do i have|do you know when} my <s>{ is|}?"),
        Phrase("{when my <s> is|the time of my <s>}"),
    ),
    _Topic(
        ("age",),
        (_age,),
        Phrase("i am <v> years old", "my age is <v>", "i'm <v> years old"),
        Phrase("how old am i?", "what is my age?", "what's my age?", "do you {know|remember} how old i am?"),
        Phrase("{how old i am|my age}"),
    ),
    _Topic(
        ("job",),
        (_profession,),
        Phrase("i work as a <v>", "i am a <v>", "my job is <v>", "my profession is <v>"),
        Phrase("what is my job?", "what do i do for a living?", "what is my profession?", "what do i work as?"),
        Phrase("{my job|what my job is|my profession|what i work as}"),
    ),
    _Topic(
        ("project", "book", "film", "shop", "street", "song", "village", "river", "club", "robot", "game", "planet"),
        (_any_name, _secret),
        Phrase("the name of {the|our|my} <s> is <v>", "{the|our|my} <s> is {called|named} <v>", "we call the <s> <v>"),
        Phrase(
            "what is the name of {the|our|my} <s>?",
            "what is the <s> called?",
            "how is the <s> called?",
            "what's the <s>'s name?",
        ),
        Phrase("{the name of the <s>|what the <s> is called|the <s>'s name}"),
    ),
)
_VALUE = "\0"  # stands for the value until there is one
_ORDER = Phrase(
    "{tell me|say|tell me again|remind me of|repeat|give me|name} <x>", "{tell me|write down|say|repeat} <x>"
)
_CLAUSES = ("what ", "who ", "where ", "when ", "how ", "which ")


def detail(rng: Random) -> Detail:
    """A detail with a value that may be a new word, and is none of those that it is told and asked for with."""
    topic = _TOPICS[int(rng.random() * len(_TOPICS))]
    subject = topic.subjects[int(rng.random() * len(topic.subjects))]
    wanted = topic.indirect.write(rng, s=subject)
    order = f"tell me {wanted}" if wanted.startswith(_CLAUSES) else _ORDER.write(rng, x=wanted)
    question = topic.question.write(rng, s=subject)
    statement = topic.statement.write(rng, s=subject, v=_VALUE)
    value = _VALUE
    while value.lower() in f"{statement} {order} {question}":
        value = topic.makers[int(rng.random() * len(topic.makers))](rng)
    if value in _MONTHS:
        statement = statement.replace(" on ", " in ")
    if value in _DAYS:
        statement = statement.replace(" in ", " on ")
    return Detail(subject, value, statement.replace(_VALUE, value), question, order)
