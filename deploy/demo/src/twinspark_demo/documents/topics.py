"""Topics: kinds of details that people tell, with the words that each is told and asked for in."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.words import NOUNS, code, name, pseudo_word
from twinspark_demo.knowledge import CAPITALS, COLOURS

_CITIES = tuple(CAPITALS.values())
_COLOURS = tuple(dict.fromkeys(COLOURS.values()))
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
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


def noun(rng: Random) -> str:
    """An English noun."""
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
    return DAYS[int(rng.random() * 7)]


def _month(rng: Random) -> str:
    return MONTHS[int(rng.random() * 12)]


def _profession(rng: Random) -> str:
    return _PROFESSIONS[int(rng.random() * len(_PROFESSIONS))]


def _age(rng: Random) -> str:
    return str(1 + int(rng.random() * 99))


def _secret(rng: Random) -> str:
    return code(rng) if rng.random() < 0.6 else (noun, pseudo_word)[int(rng.random() * 2)](rng)


@dataclass(frozen=True, slots=True)
class Topic:
    """Subjects that are told and asked for in the same words."""

    subjects: tuple[str, ...]
    makers: tuple[Maker, ...]
    statement: Phrase
    question: Phrase  # the orders are made of its indirect form
    indirect: Phrase
    thing: Phrase  # the same as a noun: what can be told, forgotten and asked for


TOPICS = (
    Topic(
        ("name",),
        (_any_name,),
        Phrase(
            "{people|all|my friends} call me <v>",
            "<v> is {my name|what they call me}",
            "my name, it is <v>",
            "my parents named me <v>",
            "my name is <v>",
            "my name is <v>",
            "i am <v>",
            "i'm called <v>",
            "they call me <v>",
            "you can call me <v>",
        ),
        Phrase(
            "{who am i|what do people call me|how am i called|what should you call me}?",
            "what is my name?",
            "what's my name?",
            "who am i?",
            "what am i called?",
            "do you {know|remember} my name?",
        ),
        Phrase("my name", "what my name is", "who i am"),
        Phrase("my name", "my {first |own |}name", "the name {of mine|that i gave you|that i have}"),
    ),
    Topic(
        (
            *("dog", "cat", "horse", "rabbit", "parrot", "hamster", "goldfish"),
            *("snake", "pony", "turtle", "bird", "pet", "ship", "boat"),
        ),
        (_any_name,),
        Phrase(
            "{we|i} {got|bought|found|have} a <s> and {its name is|it is called|we call it} <v>",
            "<v> is {my <s>|the name of my <s>|what i call my <s>}",
            "my <s> {answers to the name|goes by the name|has the name} <v>",
            "i named my <s> <v>",
            "there is a <s> at home, its name is <v>",
            "my <s> is {called|named} <v>",
            "the name of my <s> is <v>",
            "i have a <s> {called|named} <v>",
            "my <s>'s name is <v>",
            "i call my <s> <v>",
        ),
        Phrase(
            "{you know my <s>, right|remember my <s>|i told you about my <s>}{?|.} what is its name?",
            "what name did i give {to my <s>|my <s>}?",
            "what was my <s> {called|named}?",
            "what is my <s> called?",
            "what is the name of my <s>?",
            "{what is|what's} my <s>'s name?",
            "how is my <s> called?",
            "what do i call my <s>?",
            "do you {know|remember} {the name of my <s>|what my <s> is called}?",
        ),
        Phrase("{the name of my <s>|my <s>'s name|what my <s> is called}"),
        Phrase(
            "the name of my <s>",
            "my <s>'s name",
            "the name {that|which} my <s> has",
            "the name of {that|the} <s> of mine",
        ),
    ),
    Topic(
        (
            *("brother", "sister", "friend", "teacher", "boss", "son", "daughter", "neighbor"),
            *("uncle", "aunt", "cousin", "doctor", "mother", "father", "wife", "husband"),
            *("best friend", "dentist", "coach", "team", "company", "school"),
        ),
        (_any_name,),
        Phrase(
            "i have a <s> {called|named} <v>",
            "<v> is {my <s>|the name of my <s>|what my <s> is called}",
            "my <s> {goes by|has} the name <v>",
            "my <s> is {called|named} <v>",
            "my <s>'s name is <v>",
            "the name of my <s> is <v>",
            "my <s> is <v>",
        ),
        Phrase(
            "who is my <s>?",
            "{i told you about my <s>|you know my <s>, right|i mentioned my <s>}{?|.|,} what is the name?",
            "what was the name of my <s>?",
            "what is my <s> called?",
            "what is the name of my <s>?",
            "{what is|what's} my <s>'s name?",
            "what name does my <s> have?",
            "do you {know|remember} my <s>'s name?",
        ),
        Phrase("{the name of my <s>|my <s>'s name|what my <s> is called}"),
        Phrase("the name of my <s>", "my <s>'s name", "the name {that|which} my <s> has"),
    ),
    Topic(
        ("city",),
        (_city,),
        Phrase(
            "<v> is {my city|where i live|my home|the city i live in}",
            "i {moved to|stay in|have a house in|have my home in} <v>",
            "you find me in <v>",
            "i live in <v>",
            "i live in <v>",
            "my {home|city|town} is <v>",
            "my home is in <v>",
            "i live in the city of <v>",
        ),
        Phrase(
            "{which|what} {city|town|place} {is my home|did i say i live in|did i mention as my home}?",
            "where did i say {i live|my home is}?",
            *("where do i live?", "where do i live?", "which city do i live in?", "what city do i live in?"),
            *(
                "where is my home?",
                "what is my city?",
                "in which city do i live?",
                "do you {know|remember} where i live?",
            ),
        ),
        Phrase("{where i live|which city i live in|my city|the city where i live}"),
        Phrase("my {city|home city|home}", "the {city|place|town} {where i live|i live in|of mine}"),
    ),
    Topic(
        ("birth",),
        (_city,),
        Phrase(
            "<v> is {where i was born|my place of birth|where i come from}",
            "my birth place is <v>",
            "i grew up in <v>",
            "i {come from|am from|was born in} <v>",
            "i'm from <v>",
        ),
        Phrase(
            "{which|what} {city|town|place} {am i from|do i come from|was i born in}?",
            "where did i say i {am from|come from|was born}?",
            "where {do i come|am i} from?",
            "where was i born?",
            "do you {know|remember} where i {am|come} from?",
        ),
        Phrase("{where i am from|where i come from|where i was born}"),
        Phrase(
            "my {birth place|place of birth|origin}",
            "the {city|place|town} {i am from|i come from|where i was born}",
        ),
    ),
    Topic(
        ("work",),
        (_city,),
        Phrase(
            "<v> is where {i work|my office is}",
            "i {go to work|have a job|am employed} in <v>",
            "my work is in <v>",
            "i work in <v>",
            "my office is in <v>",
            "i have my office in <v>",
        ),
        Phrase(
            "{which|what} {city|town|place} {do i work in|is my office in}?",
            "where did i say i work?",
            "where do i work?",
            "where is my office?",
            "in which city do i work?",
            "do you {know|remember} where i work?",
        ),
        Phrase("{where i work|where my office is|which city i work in}"),
        Phrase("the {city|place|town} {where i work|i work in|of my office|where my office is}", "my place of work"),
    ),
    Topic(
        ("colour", "color"),
        (_colour,),
        Phrase(
            "<v> is {my favourite <s>|the <s> i like best|my favorite <s>}",
            "no <s> is better than <v>",
            "my preferred <s> is <v>",
            "my favourite <s> is <v>",
            "my favorite <s> is <v>",
            "the <s> i like {best|most} is <v>",
            "i {love|like} the <s> <v>",
        ),
        Phrase(
            "{which|what} <s> did i {mention|say|tell you|name}?",
            "{which|what} <s> is my {favourite|favorite}?",
            "{which|what} was my {favourite|favorite} <s>?",
            "what is my {favourite|favorite} <s>?",
            "{which|what} <s> do i {like|love|prefer}{| best| most}?",
            "do you {know|remember} my {favourite|favorite} <s>?",
        ),
        Phrase("{my favourite <s>|my favorite <s>|which <s> i like best}"),
        Phrase(
            "my {favourite|favorite} <s>", "the <s> {i like|i like best|i love|that i prefer}", "the <s> of my choice"
        ),
    ),
    Topic(
        ("number", "lucky number"),
        (_number,),
        Phrase(
            "<v> is my {favourite |}<s>",
            "my <s> {has always been|remains} <v>",
            "the <s> {i like|of mine} is <v>",
            "my favourite <s> is <v>",
            "my favorite <s> is <v>",
            "my <s> is <v>",
        ),
        Phrase(
            "{which|what} <s> did i {mention|say|tell you|name}?",
            "what was my {favourite |}<s>?",
            "what is my {favourite |favorite |}<s>?",
            "{which|what} is my <s>?",
            "do you {know|remember} my <s>?",
        ),
        Phrase("{my <s>|my favourite <s>|what my <s> is}"),
        Phrase("my {favourite |favorite |}<s>", "the <s> {that i have|i told you|of mine}"),
    ),
    Topic(
        (
            *("food", "animal", "fruit", "drink", "flower", "word", "game"),
            *("sport", "season", "tree", "instrument", "toy", "subject"),
        ),
        (noun, noun, pseudo_word, name),
        Phrase(
            "<v> is {my favourite <s>|the <s> i like best}",
            "my preferred <s> is <v>",
            "i like no <s> more than <v>",
            "my {favourite|favorite} <s> is <v>",
            "the <s> that i like {best|most} is <v>",
            "of all, my {favourite|favorite} <s> is <v>",
        ),
        Phrase(
            "{which|what} <s> did i {mention|say|tell you|name}?",
            "{which|what} <s> is my {favourite|favorite}?",
            "{which|what} was my favourite <s>?",
            "what is my {favourite|favorite} <s>?",
            "{which|what} <s> do i like {best|most}?",
            "do you {know|remember} my {favourite|favorite} <s>?",
        ),
        Phrase("{my favourite <s>|my favorite <s>|which <s> i like best}"),
        Phrase("my {favourite|favorite} <s>", "the <s> {i like|i like best|i love|that i prefer}"),
    ),
    Topic(
        (
            *("password", "code", "key word", "account", "user name", "order number", "locker code"),
            *("ticket", "license plate", "login", "secret word", "nickname", "customer number", "code word"),
        ),
        (_secret,),
        Phrase(
            "my <s> {was changed to|reads|has become|will be} <v>",
            "<v> is the <s> {i use|of mine}",
            "they gave me the <s> <v>",
            "my <s> is <v>",
            "my <s> is <v>",
            "the <s> is <v>",
            "<v> is my <s>",
            "i use the <s> <v>",
        ),
        Phrase(
            "{which|what} <s> did i {mention|say|tell you|give you}?",
            "{which|what} <s> {is mine|was it}?",
            "{what is|what's|what was} {my|my|the} <s>?",
            "{which|what} <s> do i {have|use}?",
            "do you {know|remember} my <s>?",
        ),
        Phrase("{my <s>|what my <s> is|the <s>}"),
        Phrase("my <s>", "my <s>", "the <s> {that i use|i gave you|i have|of mine}"),
    ),
    Topic(
        (
            *("meeting", "party", "lesson", "exam", "interview", "class"),
            *("concert", "conference", "talk", "workshop", "lecture", "course"),
        ),
        (_room, _room, name),
        Phrase(
            "our <s> {is held|happens|starts|will be} in room <v>",
            "for the <s> {we meet|go to|we have} room <v>",
            "the <s> has room <v>",
            "{the|my|our} <s> is in room <v>",
            "{the|our} <s> takes place in room <v>",
            "room <v> is where {the|my} <s> is",
        ),
        Phrase(
            "{which|what} room did i {mention|say|tell you} for the <s>?",
            "{which|what} room do i {need|go to} for the <s>?",
            "where {was|will} the <s>{| be}?",
            "{in which room|in what room} is the <s>?",
            "where is {the|my} <s>?",
            "{which|what} room is the <s> in?",
            "what is the room of the <s>?",
            "do you {know|remember} the room of the <s>?",
        ),
        Phrase("{the room of the <s>|which room the <s> is in|where the <s> is}"),
        Phrase("the room of {the|my|our} <s>", "the <s> room", "the room {where the <s> is|for the <s>|the <s> is in}"),
    ),
    Topic(
        ("room", "seat", "house", "flat", "locker", "desk", "table", "gate", "track"),
        (_room, _number),
        Phrase(
            "they gave me <s> number <v>",
            "number <v> is my <s>",
            "the <s> i have is number <v>",
            "my <s> number is <v>",
            "i have <s> number <v>",
            "my <s> is number <v>",
            "the number of my <s> is <v>",
        ),
        Phrase(
            "{which|what} <s> number did i {mention|say|tell you|give you}?",
            "{which|what} number {is|has|was} my <s>?",
            "what is my <s> number?",
            "{which|what} <s> number do i have?",
            "what is the number of my <s>?",
        ),
        Phrase("{my <s> number|the number of my <s>|which <s> number i have}"),
        Phrase("my <s> number", "the number of my <s>", "the number {that my <s> has|on my <s>}"),
    ),
    Topic(
        ("birthday", "appointment", "holiday", "wedding", "trip", "deadline"),
        (_day, _month),
        Phrase(
            "the {date|time} of my <s> is <v>",
            "my <s> {comes|takes place} {in|on} <v>",
            "<v> is when my <s> is",
            "my <s> is {in|on} <v>",
            "my <s> will be {in|on} <v>",
            "i have my <s> {in|on} <v>",
        ),
        Phrase(
            "when did i say my <s> is?",
            "{what|which} {day|month|time} did i {say|mention} for my <s>?",
            "when was my <s>?",
            "when is my <s>?",
            "when will my <s> be?",
            "{when do i have|do you know when} my <s>{ is|}?",
        ),
        Phrase("{when my <s> is|the time of my <s>}"),
        Phrase("the {time|date|day} of my <s>", "the time {when my <s> is|for my <s>}"),
    ),
    Topic(
        ("age",),
        (_age,),
        Phrase(
            "i turned <v>",
            "i have reached the age of <v>",
            "<v> is my age",
            "i am <v> years old",
            "my age is <v>",
            "i'm <v> years old",
        ),
        Phrase(
            "what age {am i|do i have|did i tell you|did i mention}?",
            "how old did i say i am?",
            "how many years old am i?",
            "how old am i?",
            "what is my age?",
            "what's my age?",
            "do you {know|remember} how old i am?",
        ),
        Phrase("{how old i am|my age}"),
        Phrase("my age", "the age {that i have|of mine|i told you}", "the number of my years"),
    ),
    Topic(
        ("job",),
        (_profession,),
        Phrase(
            "i earn my money as a <v>",
            "they employ me as a <v>",
            "by profession i am a <v>",
            "i work as a <v>",
            "i am a <v>",
            "my job is <v>",
            "my profession is <v>",
        ),
        Phrase(
            "{which|what} {job|profession} {do i have|did i mention|did i tell you|is mine}?",
            "as what do i work?",
            "what is my job?",
            "what do i do for a living?",
            "what is my profession?",
            "what do i work as?",
        ),
        Phrase("{my job|what my job is|my profession|what i work as}"),
        Phrase("my {job|profession|occupation}", "the {job|profession} {i do|i have|of mine}"),
    ),
    Topic(
        ("project", "book", "film", "shop", "street", "song", "village", "river", "club", "robot", "game", "planet"),
        (_any_name, _secret),
        Phrase(
            "<v> is {the name of the <s>|what the <s> is called|our <s>}",
            "the <s> {has|got|bears} the name <v>",
            "{they|we} named the <s> <v>",
            "the name of {the|our|my} <s> is <v>",
            "{the|our|my} <s> is {called|named} <v>",
            "we call the <s> <v>",
        ),
        Phrase(
            "{which|what} name {does|did} the <s> have?",
            "i told you about the <s>, what is {its|the} name?",
            "what was the <s> called?",
            "what is the name of {the|our|my} <s>?",
            "what is the <s> called?",
            "how is the <s> called?",
            "what's the <s>'s name?",
        ),
        Phrase("{the name of the <s>|what the <s> is called|the <s>'s name}"),
        Phrase("the name of {the|our|my} <s>", "the <s>'s name", "the name {for|that goes with|which we gave} the <s>"),
    ),
)
