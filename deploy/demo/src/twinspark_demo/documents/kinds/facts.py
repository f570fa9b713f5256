"""Facts: the tables of `knowledge`, asked in many forms, answered by the word or the number alone."""

from collections.abc import Callable
from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.indirect import SHARE as INDIRECT_SHARE
from twinspark_demo.documents.indirect import indirect
from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.politeness import PLAIN_SHARE, order, plain, question
from twinspark_demo.documents.turn import Setting, Turn
from twinspark_demo.knowledge import AMOUNTS, CAPITALS, COLOURS, OPPOSITES

KIND = "facts"
_REVERSE_SHARE, _NAMED_SHARE, _SMALL_COUNTRY_SHARE, _ORDER_SHARE = 0.3, 0.1, 0.06, 0.3

_CAPITALS = tuple(CAPITALS.items())
_COUNTRIES = tuple((city, country) for country, city in _CAPITALS)
_OPPOSITES = tuple(OPPOSITES.items()) + tuple((second, first) for first, second in OPPOSITES.items())
_AMOUNTS = tuple(AMOUNTS.items())
_COLOURS = tuple(COLOURS.items())

_ORDER = Phrase(
    "{tell me|name|give me|give|state|find|tell me} <x>",
    "{tell me|answer}: <x>",
    "tell me what <x> is",
)
_CAPITAL = Phrase("the capital {|city |}of <k>", "<k>'s capital{| city}", "the capital {|city |}of <k>")
_CAPITAL_QUESTION = Phrase(
    "{what is|what's|which is|do you know|what is|name} <x>?",
    "<x>{?|?||:|.| is| is?|, please}",
    "capital {|city |}of <k>{?|?||.|:}",
    "{what|which} {city|town} is <x>{?|?|}",
    "<k>: capital?",
    "<x> is what{| city}{?|}",
    "<k> has {what|which} capital{?|}",
    "what is {called|named|known as} <x>?",
    "{what city|which city} is the seat of government and {the |}capital of <k>?",
    "{what|which} capital {does|has} <k>{ have|}?",
    "what is the name of <x>?",
    "how is <x> called?",
    "{i forgot|i need|i want to know|i am looking for|remind me of} <x>{.|}",
)
_COUNTRY_QUESTION = Phrase(
    "{which|what} country has {the capital <k>|<k> as its capital}?",
    "<k> is the capital of {which|what} country?",
    "{of which country is <k> the capital|<k> is the capital of which country}?",
    "{what|which} {is the |}country {whose capital is <k>|has <k> for a capital}?",
)
_OPPOSITE = Phrase("the {opposite|opposite|antonym|contrary|reverse} of {|the word |}{<k>|<k>|\"<k>\"|'<k>'}")
_OPPOSITE_QUESTION = Phrase(
    "{what is|what's|which word is|which is|do you know|what word is} <x>?",
    "<x>{?|?||:|.| is| is?|, please}",
    '{opposite|antonym} of {<k>|<k>|"<k>"}{?|?||.|:}',
    "<k>: opposite?",
    "<x> is what{?|}",
    "<k> has {what|which} opposite{?|}",
    "what is the {opposite word|word opposite} to <k>?",
    '{what|which word} means the {opposite|contrary} of {<k>|"<k>"}?',
    "{if something is not <k>, what is it|not <k> but}?",
    "<k> is the opposite of {what|which word}?",
    '{which word|what} is opposite to {<k>|"<k>"}?',
    "{i need|i am looking for|i want} <x>{.|}",
)
_AMOUNT = Phrase("the number of <t> {of|in} <k>", "how many <t> <k> has", "the number of <t> <k> has")
_AMOUNT_QUESTION = Phrase(
    "how many <t> {does <k> have|does <k> have|has <k>|has <k> got}{?|?|}",
    "how many <t> {are|are there} in <k>{?|?|}",
    "<k> has how many <t>?",
    "what is the number of <t> {in|of} <k>?",
    "{number of <t> in <k>|<t> in <k>|<t> of <k>}{?|:}",
    "do you know how many <t> <k> has?",
    "{i want to know|i forgot} how many <t> <k> has{.|}",
    "<k> has this many <t>:",
    "what number of <t> does <k> have?",
)
_COLOUR = Phrase("the {colour|color} of <k>")
_COLOUR_QUESTION = Phrase(
    "{what|which|what} {colour|color} {is|is|has} <k>{?|?|}",
    "{what|which} {colour|color} does <k> have?",
    "{what is|what's|which is|do you know} {the|the usual} {colour|color} of <k>?",
    "<k> {is|has} {what|which} {colour|color}?",
    "{colour|color} of <k>{?|:|}",
    "{of what|what kind of} {colour|color} is <k>?",
    "<k>: {which|what} {colour|color}?",
    "do you know {what|which} {colour|color} <k> is?",
    "{i want to know|i forgot} {what|which} {colour|color} <k> is{.|}",
    "what {colour|color} is <k> {usually|normally|mostly}?",
)
_PLAIN_CAPITAL = Phrase(
    *("what is the capital of <k>?", "what is the capital of <k>?", "capital of <k>?", "the capital of <k>?"),
    *(
        "tell me the capital of <k>{.|}",
        "which city is the capital of <k>?",
        "what's the capital of <k>?",
        "capital of <k>",
    ),
    *("name the capital of <k>{.|}", "what is <k>'s capital?"),
)
_PLAIN_OPPOSITE = Phrase(
    *(
        "what is the opposite of <k>?",
        "what is the opposite of <k>?",
        'what is the opposite of "<k>"?',
        "opposite of <k>?",
    ),
    *(
        "tell me the opposite of <k>{.|}",
        "what's the opposite of <k>?",
        "the opposite of <k>?",
        "give me the opposite of <k>{.|}",
    ),
)
_PLAIN_AMOUNT = Phrase(
    *(
        "how many <t> does <k> have?",
        "how many <t> does <k> have?",
        "how many <t> are in <k>?",
        "how many <t> are there in <k>?",
    ),
    *("how many <t> has <k>?", "how many <t> in <k>?"),
)
_PLAIN_COLOUR = Phrase(
    *("what {colour|color} is <k>?", "what {colour|color} is <k>?", "which {colour|color} is <k>?"),
    *(
        "what is the {colour|color} of <k>?",
        "tell me the {colour|color} of <k>{.|}",
        "what {colour|color} does <k> have?",
    ),
)
_ABOUT = Phrase("{and|and what about|what about|and for|how about|and of} <k>{?|?|}")


def make(rng: Random, budget: int) -> Conversation:
    """One question; `budget` is far from being reached."""
    return Setting.draw(rng).conversation(KIND, (turn(rng),))


def turn(rng: Random) -> Turn:
    """A question of one of the tables."""
    return _TABLES[int(rng.random() * len(_TABLES))](rng)


def chain(rng: Random, count: int) -> list[Turn]:
    """A question and `count` - 1 more about other things of the same table, as in "And what about Spain?"."""
    first, pairs = (
        (_capital, _CAPITALS),
        (_opposite, _OPPOSITES),
        (_colour, _COLOURS),
    )[int(rng.random() * 3)]
    turns = [first(rng)]
    for key, answer in rng.sample(pairs, count - 1):
        turns.append(Turn(question(rng, _ABOUT.write(rng, k=key)), answer))
    return turns


def _ask(rng: Random, first: Phrase, named: Phrase, asked: Phrase, **slots: str) -> str:
    """A request: in the words of `first`, or with what `named` names in an order or in a question of `asked`."""
    if rng.random() < PLAIN_SHARE:
        return plain(rng, first.write(rng, **slots))
    x = named.write(rng, **slots)
    if rng.random() < INDIRECT_SHARE / (1 - PLAIN_SHARE):
        clause = x if x.startswith("how") or rng.random() < 0.4 else f"what {x} is"
        return indirect(rng, first.write(rng, **slots), clause)
    if rng.random() < _ORDER_SHARE:
        return order(rng, _ORDER.write(rng, x=x))
    return question(rng, asked.write(rng, x=x, **slots))


def _capital(rng: Random) -> Turn:
    country, city = _CAPITALS[int(rng.random() * len(_CAPITALS))]
    spelled = country.lower() if rng.random() < _SMALL_COUNTRY_SHARE else country
    return Turn(_ask(rng, _PLAIN_CAPITAL, _CAPITAL, _CAPITAL_QUESTION, k=spelled), city)


def _capital_or_country(rng: Random) -> Turn:
    if rng.random() >= _NAMED_SHARE:
        return _capital(rng)
    city, country = _COUNTRIES[int(rng.random() * len(_COUNTRIES))]
    return Turn(question(rng, _COUNTRY_QUESTION.write(rng, k=city)), country)


def _opposite(rng: Random) -> Turn:
    count = len(OPPOSITES)
    at = int(rng.random() * count) + (count if rng.random() < _REVERSE_SHARE else 0)
    word, answer = _OPPOSITES[at]
    return Turn(_ask(rng, _PLAIN_OPPOSITE, _OPPOSITE, _OPPOSITE_QUESTION, k=word), answer)


def _amount(rng: Random) -> Turn:
    (things, whole), amount = _AMOUNTS[int(rng.random() * len(_AMOUNTS))]
    article = "the" if whole == "alphabet" else "one" if rng.random() < 0.08 else _article(whole)
    return Turn(_ask(rng, _PLAIN_AMOUNT, _AMOUNT, _AMOUNT_QUESTION, t=things, k=f"{article} {whole}"), str(amount))


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeio" or noun == "hour" else "a"


def _colour(rng: Random) -> Turn:
    thing, answer = _COLOURS[int(rng.random() * len(_COLOURS))]
    return Turn(_ask(rng, _PLAIN_COLOUR, _COLOUR, _COLOUR_QUESTION, k=thing), answer)


_TABLES: tuple[Callable[[Random], Turn], ...] = (_capital_or_country, _opposite, _amount, _colour)
