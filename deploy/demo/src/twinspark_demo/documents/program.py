"""Program: short Python-like programs, one variable of which can be given any name."""

import keyword
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from twinspark_demo.documents.words import NOUNS, VERBS, any_english, code, english, open_word, pseudo_word

TARGET = "\0"  # stands for the variable's name until it has one
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_INDENT = "    "
_BUILT_IN = ("print", "range", "len", "sum", "max", "min", "abs", "int", "str", "list", "open", "map", "next", "id")
RESERVED = frozenset((*keyword.kwlist, *keyword.softkwlist, *_BUILT_IN))
_TARGET_SHARE = 0.4
_WITHIN_SHARE = 0.35  # of the blocks with room for another
_LEAST_LINES, _MOST_LINES = 4, 10


@dataclass(frozen=True, slots=True)
class Program:
    """A program with one variable's name left open."""

    name: str  # what the variable is called at first
    others: frozenset[str]  # every other identifier and every word in a string
    _text: str

    def called(self, name: str) -> str:
        """The program with its variable called `name`."""
        return self._text.replace(TARGET, name)


def identifier(rng: Random) -> str:
    """A name for a variable: a letter, a word, a pseudo-word, a code, two words; none that Python reserves."""
    while True:
        draw = rng.random()
        if draw < 0.25:
            found = _LETTERS[int(rng.random() * 26)]
        elif draw < 0.5:
            found = english(rng) if draw < 0.4 else any_english(rng).lower()
        elif draw < 0.72:
            found = pseudo_word(rng)
        elif draw < 0.8:
            found = _LETTERS[int(rng.random() * 26)] + code(rng, 1, 5).lower()
        elif draw < 0.95:
            found = joined_name(rng)
        elif draw < 0.97:
            found = word_of_name(rng) + word_of_name(rng).capitalize()
        else:
            found = _LETTERS[int(rng.random() * 26)].upper()
        if found not in RESERVED:
            return found


def joined_name(rng: Random) -> str:
    """Two words, sometimes three, joined by underscores."""
    return "_".join(word_of_name(rng) for _ in range(3 if rng.random() < 0.2 else 2))


def word_of_name(rng: Random) -> str:
    """A word or a pseudo-word in lower case."""
    draw = rng.random()
    if draw < 0.55:
        return english(rng) if draw < 0.3 else any_english(rng).lower()
    return pseudo_word(rng)


def resembling(rng: Random, name: str) -> str:
    """An identifier that has `name` within it: count, counter; x, x2, max."""
    forms = ("{}2", "{}1", "{}s", "{}_old", "new_{}", "my_{}", "{}er", "{}_count", "a{}", "{}{}", "ma{}", "in{}", "{}0")
    draw = rng.random()
    if draw < 0.75:
        return forms[int(rng.random() * len(forms))].replace("{}", name)
    return name + pseudo_word(rng) if draw < 0.9 else f"{word_of_name(rng)}_{name}"


def program(rng: Random) -> Program:
    """A program of 4 to 10 lines in which one variable occurs 2 to 10 times."""
    while True:
        writer = _Writer.draw(rng)
        text = "\n".join(writer.lines())
        if rng.random() < 0.15:
            text = _parted(rng, text)
        if 2 <= text.count(TARGET) <= 10 and _LEAST_LINES <= text.count("\n") + 1 <= _MOST_LINES:
            others = frozenset((*writer.variables, *writer.functions, *writer.strings, *RESERVED))
            return Program(writer.name, others, text)


def _parted(rng: Random, text: str) -> str:
    """With an empty line before a line that is not indented."""
    lines = text.split("\n")
    places = [at for at, line in enumerate(lines) if at and line[0] != " " and line != "else:"]
    if places:
        lines.insert(places[int(rng.random() * len(places))], "")
    return "\n".join(lines)


@dataclass(slots=True)
class _Writer:
    """The names of one program, and the grammar."""

    rng: Random
    name: str
    variables: list[str]  # without the target
    functions: list[str]
    strings: list[str]

    @classmethod
    def draw(cls, rng: Random) -> "_Writer":
        name = identifier(rng)
        variables = {identifier(rng): None for _ in range(1 + int(rng.random() * 3))}
        for _ in range(int(rng.random() * 3)):
            variables[resembling(rng, name)] = None
        functions = {(VERBS if rng.random() < 0.7 else NOUNS)[int(rng.random() * 200)]: None for _ in range(2)}
        if rng.random() < 0.2:
            functions[resembling(rng, name)] = None
        strings = [open_word(rng) for _ in range(2)]
        taken = {name, *RESERVED}
        return cls(
            rng,
            name,
            [variable for variable in variables if variable not in taken] or ["value_of_" + name],
            [function for function in functions if function not in taken and function not in variables] or ["run"],
            [word for word in strings if word != name] or ["hello"],
        )

    def lines(self) -> list[str]:
        rng = self.rng
        wanted = _LEAST_LINES + int(rng.random() * (_MOST_LINES - _LEAST_LINES + 1))
        if rng.random() < 0.2:
            parameters = [TARGET, self._variable()] if rng.random() < 0.6 else [self._other(), self._other()]
            head = f"def {self.functions[0]}({', '.join(dict.fromkeys(parameters))}):"
            body = self._block(wanted - 2)
            lines = [head, *(_INDENT + line for line in body), f"{_INDENT}return {self._expression()}"]
            return [*lines, f"print({self.functions[0]}({self._arguments()}))"] if rng.random() < 0.3 else lines
        first = f"{TARGET} = {self._expression()}" if rng.random() < 0.6 else f"{self._other()} = {self._number()}"
        return [first, *self._block(wanted - 1)]

    def _block(self, count: int) -> list[str]:
        """About `count` lines."""
        lines: list[str] = []
        while len(lines) < count:
            if count - len(lines) >= 2 and self.rng.random() < 0.25:
                lines.extend(self._headed(count - len(lines) - 1))
            else:
                lines.append(self._statement())
        return lines

    def _headed(self, room: int) -> list[str]:
        """A head and its block of at most `room` lines, and now and then an `else`; a block may hold another."""
        head, rng = self._head(), self.rng
        if room >= 2 and rng.random() < _WITHIN_SHARE:
            before = [self._statement() for _ in range(int(rng.random() * 2))] if room >= 3 else []
            body = [*before, *self._headed(room - 1 - len(before))]
        else:
            body = [self._statement() for _ in range(1 + int(rng.random() * min(2, room)))]
        lines = [head, *(_INDENT + line for line in body)]
        if head.startswith("if") and rng.random() < 0.25:
            lines.extend(("else:", _INDENT + self._statement()))
        return lines

    def _head(self) -> str:
        draw = self.rng.random()
        if draw < 0.3:
            start = f"{self._number()}, " if self.rng.random() < 0.25 else ""
            return f"for {self._variable()} in range({start}{self._atom()}):"
        if draw < 0.45:
            return f"for {self._variable()} in {self._other()}:"
        if draw < 0.65:
            return f"while {self._condition()}:"
        return f"if {self._condition()}:"

    def _condition(self) -> str:
        sign = ("<", ">", "==", "!=", "<=", ">=")[int(self.rng.random() * 6)]
        condition = f"{self._variable()} {sign} {self._atom()}"
        if self.rng.random() < 0.1:
            condition += f" {('and', 'or')[int(self.rng.random() * 2)]} {self._variable()} {sign} {self._number()}"
        return condition if self.rng.random() < 0.9 else f"not {self._variable()}"

    def _statement(self) -> str:
        return _STATEMENTS[int(self.rng.random() * len(_STATEMENTS))](self)

    def assignment_line(self) -> str:
        return f"{self._variable()} = {self._expression()}"

    def change_line(self) -> str:
        return f"{self._variable()} {('+=', '-=', '*=')[int(self.rng.random() * 3)]} {self._atom()}"

    def print_line(self) -> str:
        draw = self.rng.random()
        if draw < 0.5:
            return f"print({self._expression()})"
        if draw < 0.75:
            return f"print({self._string()}, {self._variable()})"
        return f"print({self._variable()}, {self._variable()})"

    def called_line(self) -> str:
        return f"{self._function()}({self._arguments()})"

    def listed_line(self) -> str:
        draw = self.rng.random()
        if draw < 0.4:
            return f"{self._variable()}.append({self._atom()})"
        if draw < 0.6:
            return f"{self._variable()}[{self._atom()}] = {self._atom()}"
        if draw < 0.75:
            return f"{TARGET}, {self._other()} = {self._other()}, {TARGET}"
        return f"{self._variable()} = [{self._atom()}, {self._atom()}, {self._number()}]"

    def _expression(self) -> str:
        draw = self.rng.random()
        if draw < 0.25:
            return self._atom()
        if draw < 0.75:
            sign = ("+", "+", "-", "*", "/", "%", "//")[int(self.rng.random() * 7)]
            return f"{self._atom()} {sign} {self._atom()}"
        if draw < 0.85:
            return f"({self._atom()} + {self._atom()}) * {self._atom()}"
        if draw < 0.93:
            return self.called_line()
        return self._string() if draw < 0.97 else f"{self._variable()}[{self._number()}]"

    def _arguments(self) -> str:
        return self._atom() if self.rng.random() < 0.5 else f"{self._atom()}, {self._atom()}"

    def _atom(self) -> str:
        return self._number() if self.rng.random() < 0.3 else self._variable()

    def _number(self) -> str:
        return str(int(self.rng.random() * (10 if self.rng.random() < 0.7 else 1000)))

    def _string(self) -> str:
        return f'"{self.strings[int(self.rng.random() * len(self.strings))]}"'

    def _variable(self) -> str:
        return TARGET if self.rng.random() < _TARGET_SHARE else self._other()

    def _other(self) -> str:
        return self.variables[int(self.rng.random() * len(self.variables))]

    def _function(self) -> str:
        if self.rng.random() < 0.2:
            return ("len", "max", "min", "sum", "abs")[int(self.rng.random() * 5)]
        return self.functions[int(self.rng.random() * len(self.functions))]


_STATEMENTS: tuple[Callable[[_Writer], str], ...] = (
    *(
        _Writer.assignment_line,
        _Writer.assignment_line,
        _Writer.assignment_line,
        _Writer.change_line,
        _Writer.change_line,
    ),
    *(_Writer.print_line, _Writer.print_line, _Writer.called_line, _Writer.listed_line),
)
