"""Records: tables of two or three fields, and the ways in which people write them down."""

from dataclasses import dataclass
from random import Random

from twinspark_demo.documents.words import ADJECTIVES, NOUNS, any_english, code, name, pseudo_word

Value = str | int

_NAMES_OF_TEXTS = (
    *("name", "city", "country", "color", "colour", "animal", "pet", "job", "team", "product", "street", "title"),
    *("fruit", "item", "person", "owner", "status", "code", "food", "drink", "language", "planet", "word"),
    *("label", "room", "author", "brand", "sport", "kind", "type", "group", "material", "friend", "boss", "tool"),
    *("flower", "key", "id", "first_name", "last_name", "user", "district", "captain", "place", "surname"),
    *("state", "teacher", "model"),
)
_BETWEEN_VALUES = ("and", "or")
_NAMES_OF_NUMBERS = (
    *("age", "price", "year", "count", "number", "weight", "height", "score", "points", "size", "floor", "amount"),
    *("quantity", "rank", "level", "cost", "length", "width", "pages", "speed", "distance", "seats", "goals"),
    *("value", "population", "stock", "minutes", "wins", "depth", "index", "total", "temperature", "hours"),
    *("salary", "votes"),
)


@dataclass(frozen=True, slots=True)
class Table:
    """Records with the same fields in the same order."""

    fields: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def characters(self) -> int:
        """Characters of the rows with the names of their fields."""
        names = sum(map(len, self.fields))
        return sum(names + sum(len(str(value)) for value in row) for row in self.rows)


def table(rng: Random, count: int, spaced: bool = False) -> Table:
    """`count` records. A column holds texts or whole numbers from 0 to 9999; now and then one holds both.

    Texts are single words, or pairs of words if `spaced`.
    """
    fields = _fields(rng)
    columns = []
    for field in fields:
        if field in _NAMES_OF_NUMBERS:
            numeric = rng.random() < 0.9
        else:
            numeric = rng.random() < 0.1
        mixed = rng.random() < 0.04
        low, high = _years(field, rng) or (0, (10, 10, 100, 100, 1000, 10000)[int(rng.random() * 6)])
        maker = _pair if spaced and rng.random() < 0.6 else _TEXTS[int(rng.random() * len(_TEXTS))]
        column: list[Value] = []
        for _ in range(count):
            as_number = rng.random() < 0.5 if mixed else numeric
            column.append(low + int(rng.random() * (high - low)) if as_number else maker(rng))
        columns.append(column)
    return Table(fields, tuple(zip(*columns, strict=True)))


def _years(field: str, rng: Random) -> tuple[int, int] | None:
    """The bounds of a column of years, or nothing."""
    return (1900, 2031) if rng.random() < (0.8 if field == "year" else 0.06) else None


def _fields(rng: Random) -> tuple[str, ...]:
    if rng.random() < 0.5:
        found = {"name": None} if rng.random() < 0.5 else {_field(rng): None}
        found[_NAMES_OF_NUMBERS[int(rng.random() * len(_NAMES_OF_NUMBERS))]] = None
    else:
        found = {_field(rng): None}
    count = 2 if rng.random() < 0.55 else 3
    while len(found) < count:
        found[_field(rng)] = None
    fields = list(found)
    if rng.random() < 0.15:
        rng.shuffle(fields)
    return tuple(fields)


def _field(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.5:
        return _NAMES_OF_TEXTS[int(rng.random() * len(_NAMES_OF_TEXTS))]
    if draw < 0.8:
        return _NAMES_OF_NUMBERS[int(rng.random() * len(_NAMES_OF_NUMBERS))]
    return NOUNS[int(rng.random() * len(NOUNS))] if draw < 0.92 else pseudo_word(rng)


def _word(rng: Random) -> str:
    draw = rng.random()
    if draw < 0.7:
        words = NOUNS if draw < 0.5 else ADJECTIVES
        return words[int(rng.random() * len(words))]
    while (word := any_english(rng)).lower() in _BETWEEN_VALUES:
        pass
    return word


def _pair(rng: Random) -> str:
    """New York, John Smith; now and then one word."""
    return name(rng) if rng.random() < 0.3 else f"{name(rng)} {name(rng)}"


def _any_text(rng: Random) -> str:
    return (name, _word, pseudo_word, code, name)[int(rng.random() * 5)](rng)


def _mixed_code(rng: Random) -> str:
    """Letters of one case among digits, such as 7xk2q or B12."""
    return code(rng, 2, 8) if rng.random() < 0.7 else code(rng, 1, 2) + str(int(rng.random() * 1000))


_TEXTS = (name, name, name, _word, pseudo_word, code, _mixed_code, _any_text, _any_text)


@dataclass(frozen=True, slots=True)
class Layout:
    """A way to write a record down, and what may stand between two."""

    between_values: str  # between the values of a record
    labelled: str  # between the name of a field and its value; empty: the record has no names
    separators: tuple[str, ...]
    closing: str = ""  # behind a record
    first: str = ""  # behind the first value, if it is not what stands between the others
    last: str = ""  # before the last of three values, likewise

    def holds_spaces(self) -> bool:
        """Whether a value may have a space in it, and still it is clear where it ends."""
        return self.between_values in (", ", ",", " | ", "; ", "\t", "\n")


_LINES = ("\n", "\n", "\n", "\n- ", "\n* ", "\n\u2022 ", "\n#. ", "\n#) ")
_APART = (*_LINES, "; ", "; ", "; ", " / ")
_SHORT = (*_APART, ", ", ", ", ", and ")
LAYOUTS = (
    Layout(" ", "", _SHORT),
    Layout(" ", "", _SHORT),
    Layout(": ", "", _SHORT),
    Layout(", ", "", (*_LINES, "; ", "; ")),
    Layout(",", "", ("\n", "; ", ";")),
    Layout(" | ", "", (*_LINES, "; ")),
    Layout(" - ", "", ("\n", "; ", ", ")),
    Layout("; ", "", ("\n",)),
    Layout("/", "", (*_LINES, ", ")),
    Layout("\t", "", ("\n",)),
    Layout(" = ", "", _SHORT),
    Layout(" (", "", _SHORT, ")"),
    Layout(", ", " ", (*_LINES, "; ", "; ", ". ")),
    Layout(", ", " ", (*_LINES, "; ", "; ", " / ")),
    Layout("; ", ": ", _LINES),
    Layout(", ", ": ", (*_LINES, "; ", " / ")),
    Layout(" | ", ": ", (*_LINES, "; ")),
    Layout(", ", "=", (*_LINES, "; ")),
    Layout(" ", "=", _SHORT),
    Layout(" and ", " ", (*_LINES, "; ", ", ")),
    Layout("\n", ": ", ("\n\n",)),
    Layout(", ", "", _APART, first=": "),
    Layout(", ", "", _APART, first=": "),
    Layout(", ", "", _APART, first=" - "),
    Layout(", ", "", _APART, first=" = "),
    Layout(", ", "", _APART, last=" and "),
    Layout(" ", "", _APART),
    Layout(" ", "", (*_APART, ", "), first=" - "),
    Layout(" - ", "", _APART),
    Layout(" (", "", _APART, ")"),
    Layout("\t", "", ("\n",)),
    Layout("; ", "=", _LINES),
    Layout(", ", "=", _APART),
    Layout(", ", ": ", _APART),
    Layout(" -> ", "", _SHORT),
)


def written(rng: Random, content: Table, layout: Layout) -> str:
    """The table in this layout, the marks of a list before the first record too."""
    rows = [_row(content.fields, row, layout) for row in content.rows]
    separator = layout.separators[int(rng.random() * len(layout.separators))]
    if separator == ", and ":
        return ", ".join(rows[:-1]) + (" and " if len(rows) > 1 else "") + rows[-1]
    if "#" in separator:
        return "\n".join(f"{number}{separator[2:]}{row}" for number, row in enumerate(rows, 1))
    return separator.lstrip("\n") * separator.startswith("\n") + separator.join(rows)


def _row(fields: tuple[str, ...], row: tuple[Value, ...], layout: Layout) -> str:
    if layout.closing:  # Ana (31, Oslo)
        return f"{row[0]} ({', '.join(map(str, row[1:]))})"
    if layout.labelled:
        return layout.between_values.join(
            f"{field}{layout.labelled}{value}" for field, value in zip(fields, row, strict=True)
        )
    if layout.between_values in (": ", " = ") and len(row) > 2:  # Ana: 31, Oslo
        return f"{row[0]}{layout.between_values}{' '.join(map(str, row[1:]))}"
    rest = list(map(str, row[1:]))
    if layout.last and len(rest) > 1:  # Ana, 31 and Oslo
        rest[-2:] = [rest[-2] + layout.last + rest[-1]]
    return str(row[0]) + (layout.first or layout.between_values) + layout.between_values.join(rest)
