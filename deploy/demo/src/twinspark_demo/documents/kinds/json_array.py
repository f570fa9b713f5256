"""JSON: up to 12 records given as text, turned into an array of objects on one line, fields in the order stated."""

import json
from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.politeness import PLAIN_SHARE, instruction, order, plain, upper_first
from twinspark_demo.documents.records import LAYOUTS, Table, table, written
from twinspark_demo.documents.remarks import with_remark
from twinspark_demo.documents.turn import Setting, Turn

KIND = "json"
MOST_RECORDS = 12
_MANY, _MANY_SHARE = 9, 0.4
_WANT_SHARE, _REMARK_SHARE, _SPACED_SHARE = 0.2, 0.15, 0.12
# Each value and name stands in the document twice; marks and quotes come on top.
_TOKENS_FOR_WORDING, _TOKENS_PER_CHARACTER, _TOKENS_PER_VALUE = 90, 1.1, 8

_THINGS = "{records|entries|rows|items|lines|data|people|things|objects|values|pairs}"
_THESE = f"{{these|these|the following|the following|the}} {_THINGS}"
_THIS = (
    "{this|the following|these|this list|this data|this table|the list|the data below|the following list|what follows}"
)
_ARRAY = (
    "{a JSON array|a JSON array|JSON|a JSON list|an array of JSON objects|a JSON array of objects|json|a json array"
    "|a list of JSON objects|valid JSON|an array in JSON}"
)
_VERBS_INTO = "{turn|convert|transform|change|make|put|translate|reformat|parse|rewrite}"
_VERBS_AS = "{write|format|give me|give|show|return|output|express|rewrite|present|print|encode|represent}"
_TASK = Phrase(
    f"{_VERBS_INTO} {{{_THESE}|{_THIS}|{_THIS}}} {{into|into|to}} {_ARRAY}",
    f"{_VERBS_AS} {{{_THESE}|{_THIS}}} {{as|as|in the form of}} {_ARRAY}",
    f"{{make|create|build|write|produce|generate}} {_ARRAY} {{from|of|out of}} {{{_THESE}|{_THIS}}}",
)
_FIELDS = Phrase(
    " with {the |}{fields|keys|properties|attributes|names|columns} <f>",
    ", with {the |}{fields|keys|properties} <f>",
    " with <f> as {the |}{fields|keys}",
    " ({fields|keys|columns}: <f>)",
    ", {fields|keys}: <f>",
    " {using|use} {the |}{fields|keys|names} <f>",
    ". {Fields|Keys|Columns|The fields are|The keys are|Name the fields|Call the fields}: <f>",
    ". {The fields are|The keys are|Use the keys|Use the fields|Name the fields|Call the fields} <f>",
    ", {one object a record|one object each|an object for each}, {with |}{fields|keys} <f>",
    " whose {objects|elements} have {the |}{fields|keys} <f>",
    ", each with <f>",
    " with <f>",
)
_COLUMNS = Phrase(
    ". {Each|Every} {line|record|entry|row|item} {has|gives|is|contains|holds} <f>",
    ". {The columns are|The order is|The values are} <f>",
)
_LAST = Phrase(
    "{fields|keys|columns|field names|the fields|the keys}: <f>",
    "{the fields are|the keys are|use the keys|use the fields|name the fields|call the fields|the columns are} <f>",
    "{each object has|each has|every object has|give each one} {the |}{fields|keys} <f>",
    "{i need|i want|with} the {fields|keys} <f>",
)
_PLAIN = Phrase(
    "{turn|convert} {these|this|these records|the following|the following records} {into|to} a JSON array",
    "{turn|convert} {these|this|these records|these lines} {into|to} JSON",
    "{write|give me|format} {these|this|these records|the following} as a JSON array",
    "make a JSON array {from|of} {these records|this|these}",
)
_PLAIN_FIELDS = Phrase(
    *(
        " with the {fields|keys} <f>",
        " with {fields|keys} <f>",
        " ({fields|keys}: <f>)",
        ", {fields|keys} <f>",
        " with <f>",
    ),
    *(". {Fields|Keys}: <f>", ". The {fields|keys} are <f>", ". Use the {keys|fields} <f>"),
)
_READER = (
    "{my|our|the|a|her|his} {program|script|app|website|web page|database|server|tool|test|boss|teacher|friend|team"
    "|parser|colleague|game|robot|importer|editor|page}"
)
_SINGLE = "{table|table|list|list|data|information|file|register|sheet|inventory|survey|overview}"
_SEVERAL = "{records|entries|rows|lines|items|notes|values|things|pairs}"
_LIST = f"{{{{this|the following|my}} {_SINGLE}|{{these|the following|my}} {_SEVERAL}}}"
_WANT = Phrase(
    f"{{i need|i want|i would like to have|now}} {{this|these|the following}} as {_ARRAY}",
    f"{_READER} {{needs|wants|reads|expects|accepts|understands|asks for|takes}} {{|only |nothing but }}{_ARRAY}",
    f"{{i need|we need|i want|i'd like|we want}} {_ARRAY} {{of|from|for|out of}} {_LIST}",
    f"{{how would|how could|how might}} {_LIST} look as {_ARRAY}",
    f"{{could i|can i|may i|can we}} {{have|get|see}} {_LIST} as {_ARRAY}",
    f"{_LIST} {{should be|must be|shall become|should become}} {_ARRAY}",
    f"{{from|out of}} {_LIST} {{make|build|create}} {_ARRAY}",
    f"{_ARRAY}{{|, please|, quickly}}",
    f"{{i have to send|i must send|we store|i keep}} {_LIST} as {_ARRAY}",
)
_HAVE = Phrase(
    f"{{i have|i've got|we have|i got|he sent me|she gave me}} {_LIST}",
    f"{{here is|here's|this is|see|below is}} {{my|our|a|the}} {_SINGLE}",
    f"{{my|our|the}} {_SINGLE} {{is|looks like this|reads|says}}",
)
_NEED = Phrase(
    f"{{i need|i want|we need|i'd like}} {{it|this|that|them|all of it|the same}} as {_ARRAY}",
    f"{{it|this|that|all this}} {{should be|must be|has to be|should become}} {_ARRAY}",
    f"{{now |so |please |}}{{make|give me|write|show}} {_ARRAY}{{| from it| of it| of that}}",
    f"{_READER} {{needs|wants|expects|reads}} {{it|this|that}} as {_ARRAY}",
    f"how does {{it|that|this}} look as {_ARRAY}",
)
_THAT = "{this|these|that|the above|the data above|the records above|the list above}"
_ABOVE = Phrase(
    f"{_VERBS_INTO} {_THAT} {{into|to}} {_ARRAY}",
    f"{_VERBS_AS} {_THAT} as {_ARRAY}",
    f"{{make|create|build}} {_ARRAY} {{from|of}} {{this|that|the above|the lines above}}",
)
_DATA = Phrase(
    "{here are|these are|look at|take} {the|some|my|these} {records|entries|data}", "{data|records|list|input}"
)


def make(rng: Random, budget: int) -> Conversation:
    """One table; it has fewer records if it would not fit into `budget`."""
    return Setting.draw(rng).conversation(KIND, (turn(rng, budget),))


def turn(rng: Random, budget: int, most: int = MOST_RECORDS) -> Turn:
    """A request for at most `most` records."""
    layout = LAYOUTS[int(rng.random() * len(LAYOUTS))]
    spaced = layout.holds_spaces() and rng.random() < _SPACED_SHARE
    content = _fitting(table(rng, _count(rng, most), spaced), budget)
    listed = written(rng, content, layout)
    named = listing = ""
    if not layout.labelled or rng.random() < 0.4:
        listing = _enumerated(rng, content.fields)
        wording = (_PLAIN_FIELDS, _FIELDS, _FIELDS, _FIELDS, _COLUMNS)[int(rng.random() * 5)]
        named = wording.write(rng, f=listing)
    records = [dict(zip(content.fields, row, strict=True)) for row in content.rows]
    return Turn(_request(rng, listed, named, listing), json.dumps(records))


def _count(rng: Random, most: int) -> int:
    """How many records: often so many that a long text has to be held together."""
    if most >= _MANY and rng.random() < _MANY_SHARE:
        return _MANY + int(rng.random() * (most - _MANY + 1))
    return 1 + int(rng.random() * min(most, _MANY - 1))


def _fitting(content: Table, budget: int) -> Table:
    count, width = len(content.rows), len(content.fields)
    needed = 2 * _TOKENS_PER_CHARACTER * content.characters() + _TOKENS_PER_VALUE * count * width
    share = (budget - _TOKENS_FOR_WORDING) / needed
    return content if share >= 1 else Table(content.fields, content.rows[: max(1, int(count * share))])


def _enumerated(rng: Random, fields: tuple[str, ...]) -> str:
    """name, age and city: always in the order of the values."""
    draw = rng.random()
    if draw < 0.15:
        fields = tuple(f'"{field}"' for field in fields)
    elif draw < 0.2:
        fields = tuple(f"`{field}`" for field in fields)
    draw = rng.random()
    if draw < 0.5:
        return f"{', '.join(fields[:-1])} and {fields[-1]}"
    return ("/" if draw < 0.65 else ", ").join(fields)


def _request(rng: Random, listed: str, named: str, listing: str) -> str:
    draw = rng.random()
    if draw < 0.55:
        return _task(rng, named) + _between(rng, listed) + listed
    if draw < 0.65 and named:  # the fields come last
        return (
            f"{_task(rng, '')}{_between(rng, listed)}{listed}\n\n{upper_first(_LAST.write(rng, f=listing))}{_stop(rng)}"
        )
    if draw < 0.8:
        behind = rng.random() < 0.6  # the fields stand behind the records or before them
        had = _remarked(rng, _HAVE.write(rng) + ("" if behind else named))
        need = upper_first(_NEED.write(rng)) + (named if behind else "")
        return f"{had}:{_gap(rng, listed)}{listed}\n\n{need}{_stop(rng)}"
    task = order(rng, _ABOVE.write(rng) + named)
    if draw < 0.91:
        return listed + ("\n\n" if rng.random() < 0.6 else "\n") + task
    return upper_first(_DATA.write(rng)) + (":\n" if rng.random() < 0.8 else ":\n\n") + listed + "\n\n" + task


def _task(rng: Random, named: str) -> str:
    style = rng.random()
    if style < PLAIN_SHARE:
        return plain(rng, _PLAIN.write(rng) + named)
    if style < PLAIN_SHARE + _WANT_SHARE:
        return _remarked(rng, _WANT.write(rng) + named)
    return instruction(rng, _TASK.write(rng) + named)


def _remarked(rng: Random, text: str) -> str:
    """`text`, sometimes behind a remark."""
    return plain(rng, with_remark(rng, text, may_change_case=True) if rng.random() < _REMARK_SHARE else text)


def _between(rng: Random, listed: str) -> str:
    between = (":\n", ":\n", ":\n\n", ".\n", "\n", ": ", "\n\n")[int(rng.random() * 7)]
    return ":\n" if between == ": " and "\n" in listed else between


def _gap(rng: Random, listed: str) -> str:
    return "\n" if "\n" in listed or rng.random() < 0.6 else " "


def _stop(rng: Random) -> str:
    return ("", ".", ".")[int(rng.random() * 3)]
