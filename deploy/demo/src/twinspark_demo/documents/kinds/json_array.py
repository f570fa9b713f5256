"""JSON: up to 12 records given as text, turned into an array of objects on one line, fields in the order stated."""

import json
from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.phrase import Phrase
from twinspark_demo.documents.politeness import PLAIN_SHARE, instruction, order, plain, upper_first
from twinspark_demo.documents.records import LAYOUTS, Table, table, written
from twinspark_demo.documents.turn import Setting, Turn

KIND = "json"
MOST_RECORDS = 12
_WANT_SHARE, _SPACED_SHARE = 0.06, 0.12
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
_WANT = Phrase(f"{{i need|i want|i would like to have|now}} {{this|these|the following}} as {_ARRAY}")
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
    content = _fitting(table(rng, 1 + int(rng.random() * most), spaced), budget)
    listed = written(rng, content, layout)
    named = ""
    if not layout.labelled or rng.random() < 0.4:
        wording = (_PLAIN_FIELDS, _FIELDS, _FIELDS, _FIELDS, _COLUMNS)[int(rng.random() * 5)]
        named = wording.write(rng, f=_enumerated(rng, content.fields))
    records = [dict(zip(content.fields, row, strict=True)) for row in content.rows]
    return Turn(_request(rng, listed, named), json.dumps(records))


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
    if rng.random() < 0.7:
        return f"{', '.join(fields[:-1])} and {fields[-1]}"
    return ", ".join(fields)


def _request(rng: Random, listed: str, named: str) -> str:
    draw = rng.random()
    if draw < 0.72:
        style = rng.random()
        if style < PLAIN_SHARE:
            task = plain(rng, _PLAIN.write(rng) + named)
        elif style < PLAIN_SHARE + _WANT_SHARE:
            task = upper_first(_WANT.write(rng) + named)
        else:
            task = instruction(rng, _TASK.write(rng) + named)
        between = (":\n", ":\n", ":\n\n", ".\n", "\n", ": ", "\n\n")[int(rng.random() * 7)]
        return task + (":\n" if between == ": " and "\n" in listed else between) + listed
    task = order(rng, _ABOVE.write(rng) + named)
    if draw < 0.86:
        return listed + ("\n\n" if rng.random() < 0.6 else "\n") + task
    return upper_first(_DATA.write(rng)) + (":\n" if rng.random() < 0.8 else ":\n\n") + listed + "\n\n" + task
