"""Copying: a text of 1 to 60 words, repeated exactly, also one that is a request itself.

Quotes, fences and tags around the whole text are not part of it. A text without them goes on to the end of the message
or begins with it; a single word behind its noun ("the code 7xk2q.") ends before the stop.
"""

from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.open_text import text
from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.politeness import PLAIN_SHARE, instruction, order, plain, upper_first
from twinspark_demo.documents.remarks import with_remark
from twinspark_demo.documents.said import object_text, prose, sentences, turn_text
from twinspark_demo.documents.turn import Setting, Turn
from twinspark_demo.documents.words import NOUNS

KIND = "copy"
MOST_WORDS = 60
# Long texts of repeated words; wishes that are no order; texts from other conversations.
_REPEATING_SHARE, _SAID_SHARE, _SAID_ELSEWHERE_SHARE = 0.45, 0.25, 0.3
# A token of a code is about one character and the text stands in the document twice.
_TOKENS_FOR_WORDING, _CHARACTERS_PER_TOKEN = 80, 1.2
_QUOTES = (('"', '"'), ('"', '"'), ("'", "'"), ("`", "`"), ("\u201c", "\u201d"), ("\u00ab", "\u00bb"))
_ELSEWHERE = (sentences, sentences, sentences, prose, turn_text, turn_text, turn_text, object_text)
_NESTED_SHARE, _MOST_NESTED_WORDS = 0.03, 12
_FENCES = (("```\n", "\n```"), ("<text>", "</text>"), ("---\n", "\n---"), ("<text>\n", "\n</text>"))

_VERB = (
    "{repeat|repeat|copy|copy|echo|say|write|return|reproduce|output|print|type|give back|send back|quote|write down"
    "|recite|duplicate|retype|rewrite|mirror|restate|spell out}"
)
_THING = (
    "{this|this|the following|these words|this text|the following text|the following words|the following line|this line"
    "|the text|this message|this string|the text below|what follows|what i write|the next words|this sequence|my text}"
)
_EXACTLY = (
    "{exactly|word for word|verbatim|unchanged|as it is|as is|without changes|without any change|literally|precisely"
    "|exactly as it is|exactly as written|character by character|once|again|back to me|for me|to me"
    "|faithfully}"
)
_ONLY = (
    "{, nothing else| and nothing else|, no changes|, do not change anything|, without adding anything"
    "| and add nothing| and keep the punctuation|, with all punctuation|, keep every character}"
)
_TASK = Phrase(
    f"{_VERB} {_THING}",
    f"{_VERB} {_THING} {_EXACTLY}",
    f"{_VERB} {_THING} {_EXACTLY}",
    f"{_VERB} {_THING}{_ONLY}",
    f"{_VERB} {_EXACTLY}",
    f"{_VERB}",
    f"{_VERB}",
    f"exactly {_VERB} {_THING}",
    "{repeat|say|say it|speak} after me{| exactly|, word for word}",
    "{reply|answer|respond} {with|only with|with only|with exactly|by repeating} {this|the following}{| text| words}",
    "{reply|answer|respond} {with exactly|only with}",
    "{make|give me|write|create|produce} {a|an exact|a faithful} copy of {this|the following|this text|the text}",
    "{say|write|print|output} {exactly|only|just} {this|the following}",
    "{do not|don't} change {anything|a thing|a word}, {just|only|simply} {repeat|copy|return} {this|the following}",
    "{copy|repeat} the {text|words|line|message} {after the colon|below|that follows}{| exactly}",
)
_PLAIN = Phrase(
    *(
        "repeat",
        "repeat{| this| this text| the text| the following| the following text| these words| exactly}{| exactly}",
    ),
    *(
        "copy{| this| this text| the following| the following text}{| exactly| word for word| without changes}",
        "echo{| this}",
    ),
    *(
        "{say|repeat} after me",
        "{say|write|print|output|return}{| this| exactly this| the following}{|| exactly| unchanged}",
    ),
    *("return the following{| text} unchanged", "repeat {this|the following}{| text| words} word for word"),
    *(
        "please {repeat|copy}{| this| the following}{| text}{| exactly}",
        "repeat the following {words|line|sentence|code}",
    ),
)
_BARE = Phrase("{repeat|echo|say|copy|print|output|repeat after me|reply with|say exactly|just say}")
_INLINE = Phrase(
    f"{_VERB} {{|the text |the words |exactly |the string |the line }}<q>{{| {_EXACTLY}|{_ONLY}}}",
    f"{_VERB} {{|the text |the words |exactly }}<q>",
    "{reply|answer|respond} {with|only with|with exactly} <q>{|, nothing else| and nothing else}",
    "repeat after me: <q>",
)
_NOUNED = Phrase(
    "{repeat|copy|echo|say|write|return|type|print|give back} the {word|code|name|token|string|term|password|id} <q>"
    "{|| exactly| once| unchanged| for me| back to me}",
)
_SPOKEN = (
    "{what i say|what i write|what i type|what i tell you|my words|every word i say|every word i write|my message"
    "|the following|this|my text|my line|all of this|whatever i write|the words below|this text}"
)
_COPYING = (
    "{repeat|copy|echo|say|write|type|type out|write out|say back|give back|return|reproduce|recite|retype|spell out}"
)
_BROKEN = Phrase(
    "{my|our|the} <n> {is broken|does not work|is out of order|is gone|is full|is lost|stopped working|is empty"
    "|lost its memory|is at home}, so {please |}{copy|repeat|type out|write out|retype|return|echo} "
    "{this|this text|the following|this for me|these words|what i write}{| exactly| word for word}",
)
_SAID = Phrase(
    f"i {{want|need|would like|ask}} you to {_COPYING} {_SPOKEN}{{| {_EXACTLY}}}",
    "{please |}{be|play|act as|act like} {my|a|the} {parrot|mirror|echo|copying machine|typewriter|photocopier|scribe}"
    "{| and {repeat|copy|echo|say} {what i say|this|the following|my words|every word}}",
    f"you are {{a|my}} {{parrot|mirror|typist|scribe|copying machine}}: {_COPYING} {_SPOKEN}",
    f"{{type out|write out|type in|type|key in|put down|jot down}} {_SPOKEN}{{| {_EXACTLY}}}",
    f"{{i need|i want|i would like|i'd like|we need|give me}} {{a copy of|an exact copy of|a true copy of}} {_SPOKEN}",
    f"{{let me|i want to|i would like to}} {{hear|see|read|have}} {_SPOKEN} {{again|once more|from you|back}}",
    f"{{your answer|your reply|the answer|your output}} {{must be|should be|is|has to be}} {{exactly |}}{_SPOKEN}",
    f"{{this is|here comes|we do|now}} {{a|an}} {{dictation|typing test|echo test|copying test}}, {_COPYING} {_SPOKEN}",
    f"{{show that you can|show me that you can|see if you can|try to}} {_COPYING} {_SPOKEN}{{| {_EXACTLY}}}",
    f"{{when i write something, you|whatever comes now, you|you|you just}} {_COPYING} {{it|it exactly|it back}}",
    f"do {{nothing|nothing else}} but {_COPYING} {_SPOKEN}",
    f"{{can|could|will}} you {_COPYING} {_SPOKEN}{{| {_EXACTLY}}}{{| for me}}{{|?}}",
)
_ABOVE = Phrase(
    "{repeat|copy|write|return|say|reproduce|echo|type} "
    "{that|it|the above|the text above|the words above|this text|these words|the lines above|the message above"
    "|what i wrote|what i said|everything above|all of it|the text}"
    "{|| exactly| word for word| unchanged| verbatim| once more| again| as it is| without changes| for me}",
)
_INTRODUCED = Phrase(
    "{here is|this is|look at|take|read|see} {a|the|this|my} {text|line|message|string|sentence}",
    "{text|my text|the text|input|message|line}",
    "{here is|this is} what {i want you to|you should} {repeat|copy}",
)


def make(rng: Random, budget: int) -> Conversation:
    """One text to copy; it is shortened if it and its copy would not fit into `budget`."""
    return Setting.draw(rng).conversation(KIND, (turn(rng, budget),))


def turn(rng: Random, budget: int, most_words: int = MOST_WORDS) -> Turn:
    """A request to copy at most `most_words` words."""
    if rng.random() < _NESTED_SHARE and most_words > _MOST_NESTED_WORDS:
        inner = turn(rng, budget // 2, _MOST_NESTED_WORDS).request
        if _is_clear(inner) and len(inner.split()) <= most_words:
            return Turn(_after_colon(rng, inner), inner)  # the first of two requests holds
    payload = _payload(rng, budget, most_words)
    if " " not in payload and rng.random() < 0.3:
        quoted = payload if rng.random() < 0.6 else _quoted(rng, payload)
        return Turn(order(rng, _NOUNED.write(rng, q=quoted)), payload)
    return Turn(_FORMS[int(rng.random() * len(_FORMS))](rng, payload), payload)


def _payload(rng: Random, budget: int, most_words: int) -> str:
    """A text with something to read in it, and not in quotes as a whole."""
    while True:
        payload = _said_elsewhere(rng, most_words) if rng.random() < _SAID_ELSEWHERE_SHARE else ""
        payload = _shortened(payload or _words(rng, most_words), budget)
        if _is_clear(payload):
            return payload


def _is_clear(payload: str) -> bool:
    is_quoted = any(payload.startswith(left) and payload.endswith(right) for left, right in _QUOTES)
    return any(map(str.isalnum, payload)) and not is_quoted


def _words(rng: Random, most: int) -> str:
    draw = rng.random()
    repeats = draw < _REPEATING_SHARE
    if repeats:
        count = 40 + int(rng.random() * (MOST_WORDS - 39))
    elif draw < 0.62:
        count = 1 + int(rng.random() * 3)
    elif draw < 0.79:
        count = 4 + int(rng.random() * 16)
    else:
        count = 16 + int(rng.random() * (MOST_WORDS - 15))
    return text(rng, min(count, most), repeats)


def _said_elsewhere(rng: Random, most_words: int) -> str:
    """Sentences, something from another conversation, or JSON; empty if what was drawn is too long."""
    payload = _ELSEWHERE[int(rng.random() * len(_ELSEWHERE))](rng)
    return payload.strip() if len(payload.split()) <= most_words else ""


def _shortened(payload: str, budget: int) -> str:
    room = int((budget - _TOKENS_FOR_WORDING) * _CHARACTERS_PER_TOKEN / 2)
    if len(payload) <= room:
        return payload
    return payload[:room].rsplit(" ", 1)[0].rstrip(" \n-,;:")


def _quoted(rng: Random, payload: str) -> str:
    """The payload in marks that do not occur in it; in none if all do."""
    pairs = [pair for pair in _QUOTES if not any(mark in payload for mark in pair)] or [("", "")]
    left, right = pairs[int(rng.random() * len(pairs))]
    return left + payload + right


def _after_colon(rng: Random, payload: str) -> str:
    between = (": ", ": ", ": ", ":\n", ":\n", ":\n\n", ".\n", "\n", "\n\n", ":")[int(rng.random() * 10)]
    if rng.random() < 2 * PLAIN_SHARE:  # as often among all forms as other kinds have plain requests
        return plain(rng, _PLAIN.write(rng)) + between + payload
    if rng.random() < _SAID_SHARE / (1 - 2 * PLAIN_SHARE):
        return _said(rng) + between + payload
    return instruction(rng, _TASK.write(rng)) + between + payload


def _said(rng: Random) -> str:
    if rng.random() < 0.15:
        return plain(rng, _BROKEN.write(rng, n=NOUNS[int(rng.random() * len(NOUNS))]))
    wish = _SAID.write(rng)
    return plain(rng, with_remark(rng, wish, may_change_case=True) if rng.random() < 0.15 else wish)


def _bare(rng: Random, payload: str) -> str:
    if "\n" in payload:
        return _after_colon(rng, payload)
    # A text with a colon in it could begin behind that.
    between = ": " if ":" in payload or rng.random() < 0.4 else " "
    return instruction(rng, _BARE.write(rng)) + between + payload


def _in_quotes(rng: Random, payload: str) -> str:
    quoted = _quoted(rng, payload)
    if quoted == payload:
        return _after_colon(rng, payload)
    draw = rng.random()
    if draw < 0.5:
        return order(rng, _INLINE.write(rng, q=quoted))
    if draw < 0.8:
        return instruction(rng, _TASK.write(rng)) + (": " if rng.random() < 0.7 else ":\n") + quoted
    between = (" ", " - ", ". ", "\n", "\n\n", ": ")[int(rng.random() * 6)]
    return quoted + between + order(rng, _ABOVE.write(rng))


def _first(rng: Random, payload: str) -> str:
    return payload + ("\n\n" if rng.random() < 0.6 else "\n") + order(rng, _ABOVE.write(rng))


def _introduced(rng: Random, payload: str) -> str:
    lead = upper_first(_INTRODUCED.write(rng)) + (":\n", ": ", ":\n\n")[int(rng.random() * 3)]
    return lead + _first(rng, payload)


def _fenced(rng: Random, payload: str) -> str:
    opening, closing = _FENCES[int(rng.random() * len(_FENCES))]
    if opening.strip() in payload:
        return _after_colon(rng, payload)
    block = opening + payload + closing
    if rng.random() < 0.6:
        task = _said(rng) if rng.random() < _SAID_SHARE else instruction(rng, _TASK.write(rng))
        return task + (":\n" if rng.random() < 0.8 else "\n\n") + block
    return block + "\n" + order(rng, _ABOVE.write(rng))


_FORMS = (
    *(_after_colon, _after_colon, _after_colon, _after_colon),
    *(_bare, _in_quotes, _in_quotes, _first, _introduced, _fenced),
)
