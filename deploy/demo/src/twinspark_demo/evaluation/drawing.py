"""Draws the prompts of an evaluation: the same seed, the same prompts, whatever other kinds are drawn beside them."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from twinspark_demo.evaluation.filler import TOKENS_PER_SENTENCE
from twinspark_demo.evaluation.kinds import (
    arithmetic,
    constrained,
    copying,
    counting,
    facts,
    follow_up,
    json_array,
    needle,
    renaming,
    tool_none,
    tool_one,
    tool_result,
    tool_two,
)
from twinspark_demo.evaluation.prompt import Prompt, Wording

SEED = 905_417_263
"""Of an evaluation that names none."""
COUNT = 50
LONGEST_COUNT = 20
"""Prompts of 8,000 tokens at most."""
ALL_NEEDLES = "needle"
"""Means the needles of all sizes."""

Make = Callable[[random.Random, Wording], Prompt]


@dataclass(frozen=True, slots=True)
class Kind:
    """How the prompts of one kind are made."""

    make: Make
    wordings: Sequence[Wording]


def kinds(tokens_per_sentence: float = TOKENS_PER_SENTENCE) -> Mapping[str, Kind]:
    """All kinds by name, in the order of the table."""
    needles = {
        f"needle_{size}": Kind(
            partial(needle.make, num_tokens=size, tokens_per_sentence=tokens_per_sentence), needle.WORDINGS
        )
        for size in needle.SIZES
    }
    return {
        "arithmetic": Kind(arithmetic.make, arithmetic.WORDINGS),
        "facts": Kind(facts.make, facts.WORDINGS),
        "counting": Kind(counting.make, counting.WORDINGS),
        "copy": Kind(copying.make, copying.WORDINGS),
        "json": Kind(json_array.make, json_array.WORDINGS),
        "rename": Kind(renaming.make, renaming.WORDINGS),
        **needles,
        "follow_up": Kind(follow_up.make, follow_up.WORDINGS),
        "tool_one": Kind(tool_one.make, tool_one.WORDINGS),
        "tool_two": Kind(tool_two.make, tool_two.WORDINGS),
        "tool_result": Kind(tool_result.make, tool_result.WORDINGS),
        "tool_none": Kind(tool_none.make, tool_none.WORDINGS),
        "tool_loop": Kind(constrained.make_loop, tool_one.WORDINGS),
        "tool_required": Kind(constrained.make_required, tool_one.WORDINGS),
        "tool_named": Kind(constrained.make_named, tool_one.WORDINGS),
        "tool_parallel": Kind(constrained.make_parallel, tool_two.WORDINGS),
        "json_schema": Kind(constrained.make_records, json_array.WORDINGS),
    }


def draw_prompts(
    kind: str, count: int = COUNT, seed: int = SEED, tokens_per_sentence: float = TOKENS_PER_SENTENCE
) -> list[Prompt]:
    """That many prompts of a kind (of the longest, LONGEST_COUNT at most); its wordings take turns."""
    rng = random.Random(f"{seed}/{kind}")
    drawn_from = kinds(tokens_per_sentence)[kind]
    in_turn = rng.sample(drawn_from.wordings, len(drawn_from.wordings))
    if kind == "needle_8000":
        count = min(count, LONGEST_COUNT)
    drawn = [drawn_from.make(rng, in_turn[place % len(in_turn)]) for place in range(count)]
    return [_with_history(prompt, *divmod(place, len(in_turn))) for place, prompt in enumerate(drawn)]


def _with_history(prompt: Prompt, round_: int, place: int) -> Prompt:
    """Every other conversation drops reasoning; a wording that comes again is asked in the other way."""
    return replace(prompt, sends_reasoning=(round_ + place) % 2 == 0) if prompt.later_turns else prompt


def expand_kinds(names: str) -> list[str]:
    """Names separated by commas, as a list in the order of the table; `needle` means all sizes, nothing means all.

    Raises ValueError for an unknown name.
    """
    known = list(kinds())
    wanted: set[str] = set()
    for name in filter(None, map(str.strip, names.split(","))):
        found = {kind for kind in known if kind == name or (name == ALL_NEEDLES and kind.startswith("needle_"))}
        if not found:
            raise ValueError(
                f"unknown kind {name}: one of {', '.join(known)} is needed, or {ALL_NEEDLES} for all of its sizes"
            )
        wanted |= found
    return [kind for kind in known if kind in wanted or not wanted]
