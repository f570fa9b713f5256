"""What people put around a request: greetings, politeness, thanks, punctuation, a small or a capital first letter."""

from random import Random

from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.remarks import SHARE as REMARK_SHARE
from twinspark_demo.documents.remarks import with_remark

PLAIN_SHARE = 0.3  # of requests in the words that come to mind first
_PLAIN, _SMALL_FIRST_LETTER, _TAILED = 0.6, 0.15, 0.12

# Before a question or a bare instruction; what follows keeps its small letter behind a comma.
_QUESTION_LEAD = Phrase(
    "{hi|hello|hey|good morning|good evening|dear model|ok|okay|so|well|now|sorry|next|excuse me|thanks|hm}{,|,|.|!|:}",
    "{quick question|question|a question|one question|another question|i have a question|next one}{:|:|.}",
    "{please |}{tell me|answer|answer this}:",
    "{can|could} you {tell me|answer this|help me|help}{:|?}",
    "{i would like|i want|i'd like} to know:",
    "answer {briefly|shortly|in short|with one word|this question}:",
)
_ORDER_LEAD = Phrase(
    "please",
    "{hi|hello|hey|ok|okay|now|next|good morning|so}, {please |}",
    "{hi|hello|hey}! {please |}",
    "kindly",
    "now {please |}",
    "{i want|i need|i would like|i'd like} you to",
    "your {task|job} is to",
    "you {must|should|have to}",
    "task:",
)
_ASKING_LEAD = Phrase(
    "{can|could|would|will} you{ please| kindly||} ",
    "{hi|hello|hey}, {can|could} you{ please||} ",
    "please, {can|could} you ",
    "are you able to ",
    "is it possible for you to ",
)
_THANKS = Phrase(" {thanks|thank you|many thanks|please|cheers}{.|!|}", " {Thanks|Thank you|Many thanks|Please}{.|!|}")
_SHORTLY = Phrase(
    " {only|just} the {answer|result}{| please|, please}{.||!}", " {be brief|short answer|answer shortly|no more}{.||!}"
)


def upper_first(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def plain(rng: Random, text: str) -> str:
    """`text`, a whole message, with a capital first letter or as it is."""
    return _first_letter(rng, text)


def question(rng: Random, core: str) -> str:
    """`core`, a question or a short phrase that stands alone with its punctuation, as somebody would type it."""
    if rng.random() < _PLAIN:
        return _first_letter(rng, core)
    text = core
    if rng.random() < REMARK_SHARE / (1 - _PLAIN):
        text = with_remark(rng, core, may_change_case=True)
    elif rng.random() < 0.7:
        lead = _QUESTION_LEAD.write(rng)
        text = f"{lead} {core if lead[-1] == ',' or rng.random() < 0.3 else upper_first(core)}"
    if rng.random() < 0.4:
        text = stopped(text) + (_THANKS if rng.random() < 0.6 else _SHORTLY).write(rng)
    return _first_letter(rng, text)


def order(rng: Random, core: str) -> str:
    """`core`, an instruction in the imperative without a stop at its end, as a whole message."""
    draw = rng.random()
    if draw < REMARK_SHARE:
        text = stopped(with_remark(rng, core, may_change_case=True))
    elif draw < 0.5:
        text = core + ("", "", ".", ".", ".", "!")[int(rng.random() * 6)]
    elif draw < 0.78:
        text = f"{_ORDER_LEAD.write(rng).rstrip()} {core}" + ("", ".", ".")[int(rng.random() * 3)]
    else:
        text = _ASKING_LEAD.write(rng) + core + ("", "?", "?", "?", ".")[int(rng.random() * 5)]
    if rng.random() < _TAILED:
        text = stopped(text) + _THANKS.write(rng)
    return _first_letter(rng, text)


def instruction(rng: Random, core: str) -> str:
    """`core`, an instruction in the imperative, made polite or not, without a stop at its end: text follows."""
    draw = rng.random()
    if draw < REMARK_SHARE:
        text = with_remark(rng, core, may_change_case=True)
    elif draw < 0.6:
        text = core
    elif draw < 0.85:
        text = f"{_ORDER_LEAD.write(rng).rstrip()} {core}"
    else:
        text = _ASKING_LEAD.write(rng) + core
    return _first_letter(rng, text)


def stopped(text: str) -> str:
    """The text with a stop at its end, if it had none."""
    return text if text[-1] in ".?!:," else text + "."


def _first_letter(rng: Random, text: str) -> str:
    return text if rng.random() < _SMALL_FIRST_LETTER else upper_first(text)
