"""Plain programs: a few assignments of integers, then lines that use the same few variables again and again."""

from collections.abc import Callable
from functools import partial
from random import Random

from twinspark_demo.documents.program import (
    RESERVED,
    TARGET,
    Program,
    identifier,
    joined_name,
    resembling,
    word_of_name,
)
from twinspark_demo.documents.words import NOUNS, VERBS, code, english, pseudo_word

MOST_USES, MOST_LINES = 10, 12
_WITHIN_SHARE = 0.35  # of the blocks with room for another
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_LOOP_NAMES = ("i", "i", "i", "j", "k", "n", "step", "_")
_COMPARISONS = ("<", ">", "<", ">", "==", "<=", ">=", "!=")

# a, b, c: variables; f, g: functions; m, n: numbers; s: a sign.
_LINES = (
    *("{a} = {b} + {n}", "{a} = {b} + {n}", "{a} = {b} - {n}", "{a} = {b} * {n}", "{a} = {b} + {c}", "{a} = {b} - {c}"),
    *("{a} = {a} + {b}", "{a} = {a} + {n}", "{a} = {b} * {c}", "{a} = {b} + {c} + {n}", "{a} = {b}", "{a} = {n}"),
    *("{a} = {f}({b}, {n})", "{a} = {f}({b}, {n})", "{a} = {f}({b})", "{a} = {g}({b}, {c})", "{a} = {f}({n}, {b})"),
    *("{f}({a})", "{f}({a})", "{g}({a}, {b})", "{f}({a}, {n})", "print({a})", "print({a})", "print({a}, {b})"),
    *("{a} += {n}", "{a} -= {b}", "print({a} + {b})", "print({f}({a}))"),
)
_HEADS = (
    *("for {i} in range({n}):", "for {i} in range({n}):", "for {i} in range({a}):", "for {i} in range({m}, {n}):"),
    *("if {a} {s} {n}:", "if {a} {s} {n}:", "if {a} {s} {b}:", "while {a} {s} {b}:"),
)
_COUNTED = (("while {a} < {n}:", "{a} = {a} + {m}"), ("while {a} > {m}:", "{a} = {a} - {m}"))


def _letter(rng: Random) -> str:
    return _LETTERS[int(rng.random() * 26)]


def _short(rng: Random) -> str:
    return _letter(rng) + code(rng, 1, 3).lower()


def _of_all_lengths(rng: Random) -> str:
    """A word (half), two words joined, a letter: names of one program that have nothing in common."""
    draw = rng.random()
    if draw < 0.45:
        return word_of_name(rng)
    return joined_name(rng) if draw < 0.75 else _letter(rng)


_STYLES: tuple[Callable[[Random], str], ...] = (
    *(pseudo_word, pseudo_word, english, english, _of_all_lengths, _of_all_lengths, _of_all_lengths, _of_all_lengths),
    *(identifier, _letter, _short),
)


def plain_program(rng: Random) -> tuple[Program, Callable[[Random], str]]:
    """A program of 4 to 12 lines with one variable used 2 to 10 times, and the maker of the style of its variables."""
    while True:
        maker = _STYLES[int(rng.random() * len(_STYLES))]
        names = _names(rng, maker)
        variables = [TARGET, *names[1:]]
        rng.shuffle(variables)
        functions, loop = _functions(rng, names), _loop_name(rng, names)
        text = "\n".join(_lines(rng, variables, functions, loop))
        if 2 <= text.count(TARGET) <= MOST_USES:
            return Program(names[0], frozenset((*names[1:], *functions, loop, *RESERVED)), text), maker


def _names(rng: Random, maker: Callable[[Random], str]) -> list[str]:
    """Two to four different names; now and then one holds another."""
    count = 2 + int(rng.random() * 3)
    found: dict[str, None] = {}
    while len(found) < count:
        alike = found and rng.random() < 0.08
        name = resembling(rng, next(iter(found))) if alike else maker(rng)
        if name not in RESERVED:
            found[name] = None
    return list(found)


def _functions(rng: Random, names: list[str]) -> list[str]:
    maker = (english, pseudo_word, _of_all_lengths, _of_all_lengths, None)[int(rng.random() * 5)]
    words = VERBS if rng.random() < 0.7 else NOUNS
    drawn = [maker(rng) if maker else words[int(rng.random() * len(words))] for _ in range(2)]
    return [word for word in drawn if word not in names and word not in RESERVED] or ["run_it"]


def _loop_name(rng: Random, names: list[str]) -> str:
    name = _LOOP_NAMES[int(rng.random() * len(_LOOP_NAMES))]
    return "index_" if name in names else name


def _lines(rng: Random, variables: list[str], functions: list[str], loop: str) -> list[str]:
    lines = [f"{variable} = {_number(rng)}" for variable in variables]
    wanted = min(len(lines) + 3 + int(rng.random() * 6), MOST_LINES)
    fill = partial(_filled, rng, variables, functions, loop)
    while len(lines) < wanted:
        if wanted - len(lines) < 2 or rng.random() < 0.7:
            lines.append(fill(_LINES[int(rng.random() * len(_LINES))]))
        else:
            lines.extend(_block(rng, wanted - len(lines), fill))
    return lines


def _block(rng: Random, room: int, fill: Callable[[str], str]) -> list[str]:
    """A head and what belongs to it, at most `room` lines, which are 2 or more; it may hold a further block."""
    if rng.random() < 0.2:
        return fill("\n    ".join(_COUNTED[int(rng.random() * 2)])).split("\n")
    head = fill(_HEADS[int(rng.random() * len(_HEADS))])
    if room >= 3 and rng.random() < _WITHIN_SHARE:
        before = [fill(_LINES[int(rng.random() * len(_LINES))])] if room >= 4 and rng.random() < 0.5 else []
        body = [*before, *_block(rng, room - 1 - len(before), fill)]
    else:
        body = [fill(_LINES[int(rng.random() * len(_LINES))]) for _ in range(1 + int(rng.random() * min(2, room - 1)))]
    return [head, *(f"    {line}" for line in body)]


def _filled(rng: Random, variables: list[str], functions: list[str], loop: str, line: str) -> str:
    a, b, c = (variables[int(rng.random() * len(variables))] for _ in range(3))
    return line.format(
        a=a,
        b=b,
        c=c,
        i=loop,
        f=functions[0],
        g=functions[-1],
        m=1 + int(rng.random() * 5),
        n=_number(rng),
        s=_COMPARISONS[int(rng.random() * len(_COMPARISONS))],
    )


def _number(rng: Random) -> str:
    return str(int(rng.random() * (10 if rng.random() < 0.5 else 100)))
