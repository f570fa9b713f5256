"""Requests for calls, as a stranger would write them: clauses, one or two of them in a message."""

from dataclasses import dataclass
from random import Random

from twinspark_demo.documents import tool_values
from twinspark_demo.documents.tool_values import Argument
from twinspark_demo.documents.tool_wordings import WORDINGS
from twinspark_demo.knowledge import Function

_COMMAND_LEADS = (
    *("", "", "", "", "Please ", "please ", "I want you to ", "I need you to ", "Hey, ", "Hi, ", "Now "),
    *("I would like you to ", "You should ", "Help me: ", "Go and ", "Just ", "OK, ", "Next, ", "Hello! "),
)
_ASKING_LEADS = ("Can you ", "Could you ", "Would you ", "Can you please ", "Will you ", "Could you please ")
_QUESTION_LEADS = ("", "", "", "", "", "Hey, ", "Hi, ", "Tell me, ", "So ", "Hello! ", "I wonder, ", "Quick question: ")
_THING_LEADS = (
    *("", "", "", "", "Give me the ", "Show me the ", "I need the ", "Get me the ", "Tell me the ", "I want the "),
    *("I want to know the ", "Look up the ", "Find the ", "Get the ", "Check the ", "I would like the "),
)
_ASKING_THING_LEADS = ("What is the ", "What's the ", "Do you know the ", "Can you tell me the ", "Can I have the ")
_ACTION_LEADS = ("", "", "", "Please, ", "Hi, ", "Hey, ", "OK, ")
_COMMAND_TAILS = ("", "", "", ".", ".", " please", ", please", " please.", "!", " now", " right now", " for me",
                  " for me please", ", thanks", ". Thanks", ", thank you.")  # fmt: skip
_QUESTION_TAILS = ("?", "?", "?", "?", "", " please?", ", please?", " now?", " right now?", "? Thanks")
_OPEN_TAILS = ("", "", "", "", ".", ".", ".", "!", " please", ", please", ", please.", ", thanks.")
_OPEN_QUESTION_TAILS = ("?", "?", "", ".", ", please?")
_BOTH_LEADS = ("First ", "First, ", "Two things: ", "Please do two things: ", "Both: ", "Two requests: ",
               "I need both: ", "Do this: ", "You have two tasks: ", "Do both: ",
               "Do both of these: ", "Please do both: ", "Two tasks: ", "Do two things for me: ", "I want two things: ",
               "There are two things to do: ", "At once: ")  # fmt: skip
_JOINERS = (" and ", " and ", " and ", ", and ", " and also ", " and then ", ", then ", "; ",
            " as well as ", ", also ", ", and also ", " plus ", " & ", ", ")  # fmt: skip
_THEN_JOINERS = (", then ", " and then ", ", and then ", ", after that ", ", and ")
_LISTS = (("1. ", "\n2. "), ("1) ", "\n2) "), ("- ", "\n- "), ("* ", "\n* "), ("", "\n"), ("1. ", " 2. "),
          ("a) ", " b) "), ("(1) ", ", (2) "), ("1) ", " and 2) "), ("First: ", "\nSecond: "),
          ("One: ", ". Two: "))  # fmt: skip
_LIST_LEADS = ("", "", "", "Do both:\n", "Two things:\n", "Please do this:\n", "My list:\n", "To do:\n", "Tasks:\n",
               "I need two things:\n")  # fmt: skip
_AFTER_JOINERS = (", ", ", ", ", please ", ", then ")
_FULL_JOINERS = (". ", ". ", ". Also: ", ". Then: ", ". After that: ", "\n", ".\n", ". And: ", "! ", ". Next: ",
                 ". Secondly: ", ". One more thing: ")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause that asks for one call."""

    function: Function
    arguments: dict[str, Argument]
    text: str
    asks: bool  # needs a question mark
    is_thing: bool  # a noun phrase, may have "give me the" before it
    is_open: bool  # ends with a text of several words that is not in quotes
    starts_with_value: bool

    @property
    def is_command(self) -> bool:
        """Whether it is an imperative."""
        return not self.asks and not self.is_thing


def clause(rng: Random, function: Function) -> Clause:
    """A clause with fresh values."""
    drawn, texts = tool_values.arguments(rng, function)
    wordings = WORDINGS[function.name]
    kinds = (wordings.commands, wordings.questions, wordings.things)
    kind = rng.choices((0, 1, 2), weights=(4, 3, 3))[0]
    frame = rng.choice(kinds[kind])
    return Clause(
        function=function,
        arguments=drawn,
        text=frame.format(**texts),
        asks=kind == 1,
        is_thing=kind == 2,
        is_open=frame.endswith("{text}"),
        starts_with_value=frame.startswith("{"),
    )


def sentence(rng: Random, asked: Clause) -> str:
    """The message that asks for one call."""
    lead, asks = _lead(rng, asked)
    return _capitalised(rng, lead + asked.text, asked.starts_with_value and not lead) + _tail(rng, asked, asks)


def joined(rng: Random, first: Clause, second: Clause) -> str:
    """The message that asks for two calls, in this order."""
    draw = rng.random()
    if draw < 0.2:
        return _listed(rng, first, second)
    if draw < 0.26 and first.is_command and second.is_command and not first.is_open:
        return (
            f"{rng.choice(('After you ', 'When you '))}{first.text}{rng.choice(_AFTER_JOINERS)}{second.text}"
            + _tail(rng, second, False)
        )
    if (first.is_open and " and " in first.text) or draw < 0.5:
        return _two_sentences(rng, first, second)
    lead, asks = (rng.choice(_BOTH_LEADS), False) if rng.random() < 0.2 else _lead(rng, first)
    begin = _capitalised(rng, lead + first.text, first.starts_with_value and not lead)
    joiner = rng.choice(_JOINERS if lead[:5] != "First" else _THEN_JOINERS)
    return begin + joiner + second.text + _tail(rng, second, asks or second.asks)


def pair(rng: Random, function: Function) -> tuple[str, dict[str, Argument], dict[str, Argument]]:
    """A message that asks for two calls of one function in one clause, and the arguments of the two."""
    first, texts = tool_values.arguments(rng, function)
    second, other_texts = tool_values.arguments(rng, function)
    frame = rng.choice(WORDINGS[function.name].pairs)
    asked_again = {parameter for parameter in texts if f"{{{parameter}_2}}" in frame}
    if function.name != "set_alarm":
        second = {key: (second if key in asked_again else first)[key] for key in first}
    text = frame.format(**texts, **{f"{parameter}_2": value for parameter, value in other_texts.items()})
    lead = rng.choice(("", "", "Please ", "please ", "Hi, ", "Hey, "))
    ending = rng.choice(("", ".", " please", ", please.", "!", ", thanks"))
    return _capitalised(rng, lead + text, frame.startswith("{") and not lead) + ending, first, second


def _lead(rng: Random, asked: Clause) -> tuple[str, bool]:
    """Words before the clause, and whether the message is a question with them."""
    if asked.asks:
        return rng.choice(_QUESTION_LEADS), True
    if asked.is_thing:
        if asked.function.result == ("status",):
            return rng.choice(_ACTION_LEADS), False
        asks = rng.random() < 0.35
        return rng.choice(_ASKING_THING_LEADS if asks else _THING_LEADS), asks
    asks = rng.random() < 0.25
    return rng.choice(_ASKING_LEADS if asks else _COMMAND_LEADS), asks


def _tail(rng: Random, last: Clause, asks: bool) -> str:
    if last.is_open:
        return rng.choice(_OPEN_QUESTION_TAILS if asks else _OPEN_TAILS)
    return rng.choice(_QUESTION_TAILS if asks else _COMMAND_TAILS)


def _two_sentences(rng: Random, first: Clause, second: Clause) -> str:
    lead, asks = _lead(rng, first)
    begin = _capitalised(rng, lead + first.text, first.starts_with_value and not lead)
    if asks:
        return begin + rng.choice(("? ", "? ", "? Also: ", "?\n")) + sentence(rng, second)
    return begin + rng.choice(_FULL_JOINERS) + sentence(rng, second)


def _listed(rng: Random, first: Clause, second: Clause) -> str:
    """Two clauses as a list, each with its own question mark if it asks."""
    mark, next_mark = rng.choice(_LISTS)
    texts = [
        _capitalised(rng, asked.text, asked.starts_with_value) + (rng.choice(("?", "?", "")) if asked.asks else "")
        for asked in (first, second)
    ]
    if next_mark[0] == "." and texts[0][-1] == "?":
        next_mark = next_mark[1:]
    if next_mark == " 2. " and texts[0][-1].isdigit():  # "7 2. " would read as a time or a number
        next_mark = "\n2. "
    return (
        rng.choice(_LIST_LEADS)
        + mark
        + texts[0]
        + next_mark
        + texts[1]
        + rng.choice(("", "", "", "\nThanks", "\nplease"))
    )


def _capitalised(rng: Random, text: str, is_value: bool) -> str:
    if is_value or rng.random() < 0.2:
        return text
    return text[0].upper() + text[1:]
