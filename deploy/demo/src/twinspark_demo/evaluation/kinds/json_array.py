"""Records in plain text that are to become a JSON array of objects."""

import json
import random
from collections.abc import Mapping

from twinspark_demo.evaluation.prompt import Prompt, Wording, ask, content, wordings
from twinspark_demo.evaluation.words import Maker, any_name, code, distinct, open_word

WORDINGS = wordings(
    [
        "Turn this into a JSON array with the fields {fields}:\n{records}",
        "Write these records as a JSON array of objects with the fields {fields}:\n{records}",
        "Convert to JSON with the fields {fields}:\n{records}",
        "Make a JSON array of these. Fields: {fields}.\n{records}",
        "Give me JSON for this list, fields {fields}:\n{records}",
        "Here are some records:\n{records}\nWrite them as a JSON array with the fields {fields}.",
        "Please format as a JSON array, using the fields {fields}:\n{records}",
        "JSON array, please, with the fields {fields}:\n{records}",
    ],
    [
        "My program only reads JSON. Make this list a JSON array of objects with the fields {fields}:\n{records}",
        "I have this table:\n{records}\nI need it as a JSON array of objects, and the fields are {fields}.",
        "Put the following data in a JSON array where each object has the fields {fields}:\n{records}",
    ],
)
MOST_RECORDS = 12
_NUMBER_FIELDS = ("age", "score", "year", "price", "count", "weight", "floor", "points")
_TEXT_FIELDS = ("city", "team", "colour", "job", "code", "pet", "country", "group")
_FIRST_FIELDS = ("name", "item", "person", "title")
_NO_TEXTS = {"true", "false", "null", *_NUMBER_FIELDS, *_TEXT_FIELDS, *_FIRST_FIELDS}

Record = Mapping[str, str | int]


def make(rng: random.Random, wording: Wording) -> Prompt:
    """1 to 12 records of 2 or 3 fields."""
    fields = _draw_fields(rng)
    style = rng.choice((_spaced, _with_colon, _labelled))
    # Where commas part the values, a name may be two words.
    maker = any_name if style is _spaced or rng.random() < 3 / 4 else _full_name
    records = _draw_records(rng, fields, maker, rng.randint(1, MOST_RECORDS))
    lines = rng.choice(("\n", "; ", ", ") if style is _spaced else ("\n", "; ")).join(map(style, records))
    named = ", ".join(fields[:-1]) + f" and {fields[-1]}" if rng.random() < 0.5 else ", ".join(fields)
    text = wording.fill(fields=named, records=lines)
    return Prompt("json", ask(text), records, wording.held_out, reply=content(json.dumps(records)))


def _draw_fields(rng: random.Random) -> list[str]:
    others = rng.sample(_NUMBER_FIELDS + _TEXT_FIELDS, rng.choice((1, 2)))
    return [rng.choice(_FIRST_FIELDS), *others]


def _full_name(rng: random.Random) -> str:
    return f"{any_name(rng)} {any_name(rng)}"


def _draw_records(rng: random.Random, fields: list[str], maker: Maker, count: int) -> list[Record]:
    records: list[Record] = []
    for first in distinct(rng, maker, count):
        record: dict[str, str | int] = {fields[0]: first}
        for field in fields[1:]:
            record[field] = _draw_value(rng, field)
        records.append(record)
    return records


def _draw_value(rng: random.Random, field: str) -> str | int:
    if field in _NUMBER_FIELDS:
        return rng.randint(1, 99) if field != "year" else rng.randint(1900, 2030)
    return code(rng) if field == "code" else _text_value(rng)


def _text_value(rng: random.Random) -> str:
    """A word that nobody takes for a number, a value of JSON's own or the name of a field; a quarter capitalised."""
    while (word := open_word(rng))[0].isdigit() or word in _NO_TEXTS:
        pass
    return word.capitalize() if rng.random() < 1 / 4 else word


def _spaced(record: Record) -> str:
    return " ".join(map(str, record.values()))


def _with_colon(record: Record) -> str:
    first, *others = map(str, record.values())
    return f"{first}: {', '.join(others)}"


def _labelled(record: Record) -> str:
    return ", ".join(f"{field} {value}" for field, value in record.items())
