"""Short programs in which one variable is to get another name."""

import builtins
import keyword
import random
import re
import string
from collections.abc import Container

from twinspark_demo.evaluation.prompt import Prompt, Wording, ask, content, wordings
from twinspark_demo.evaluation.words import distinct, plain_word, words_of

WORDINGS = wordings(
    [
        "Rename the variable {old} to {new}:\n{program}",
        "Rename {old} to {new} in this program:\n{program}",
        "In this code, rename the variable {old} to {new}.\n{program}",
        "Change the variable name {old} to {new}:\n{program}",
        "Here is a program:\n{program}\nRename the variable {old} to {new}.",
        "Please rename {old} to {new} in the code below.\n{program}",
        "Replace the variable {old} by {new}:\n{program}",
        "Rewrite this program with the variable {old} renamed to {new}:\n{program}",
    ],
    [
        "I do not like the variable name {old}. Rename it to {new}, please.\n{program}",
        "My code uses a variable {old}, but {new} would be clearer. Rename the variable:\n{program}",
        "{program}\nCan you show me this code with the variable {old} renamed to {new}?",
    ],
)
_RESERVED = frozenset((*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "i"))
"""What the language reserves or knows already, and the programs' own counter."""
_LEAST_LINES, _MOST_LINES = 4, 10


def make(rng: random.Random, wording: Wording) -> Prompt:
    """A program of 4 to 10 lines; the variable stands in at least two of its places."""
    old, new, *others = _draw_names(rng, 6, words_of(wording.text))
    while len(re.findall(rf"\b{old}\b", program := _draw_program(rng, [old, *others[:2]], others[2:]))) < 2:
        pass
    renamed = re.sub(rf"\b{old}\b", new, program)
    text = wording.fill(old=old, new=new, program=program)
    return Prompt("rename", ask(text), renamed, wording.held_out, reply=content(renamed))


def _draw_names(rng: random.Random, count: int, told: Container[str]) -> list[str]:
    """Identifiers that neither the language reserves nor the request tells; one may be a part of another."""
    return distinct(rng, lambda drawn: _draw_name(drawn, told), count)


def _draw_name(rng: random.Random, told: Container[str]) -> str:
    """A word (half), two words joined, a letter."""
    while True:
        draw = rng.random()
        name = plain_word(rng) if draw < 1 / 2 else f"{plain_word(rng)}_{plain_word(rng)}"
        if draw > 3 / 4:
            name = rng.choice(string.ascii_lowercase)
        if name not in _RESERVED and name not in told:
            return name


def _draw_program(rng: random.Random, variables: list[str], functions: list[str]) -> str:
    lines = [f"{variable} = {rng.randint(0, 99)}" for variable in variables]
    wanted = rng.randint(_LEAST_LINES, _MOST_LINES)
    while len(lines) < wanted:
        lines += _draw_statement(rng, variables, functions)[: wanted - len(lines)]
    if lines[-1].endswith(":"):
        lines[-1] = f"print({rng.choice(variables)})"
    return "\n".join(lines)


def _draw_statement(rng: random.Random, variables: list[str], functions: list[str]) -> list[str]:
    """One or two lines."""
    a, b, number = rng.choice(variables), rng.choice(variables), rng.randint(1, 99)
    function = rng.choice(functions)
    statements = (
        [f"{a} = {b} {rng.choice('+-*')} {number}"],
        [f"{a} = {function}({b}, {number})"],
        [f"{function}({a})"],
        [f"print({a})"],
        [f"for i in range({number}):", f"    {a} = {a} + {b}"],
        [f"if {a} > {number}:", f"    print({b})"],
        [f"while {a} < {number}:", f"    {a} = {a} + 1"],
    )
    return rng.choice(statements)
