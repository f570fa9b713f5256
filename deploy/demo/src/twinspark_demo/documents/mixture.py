"""Mixture: the kinds of document, and how much of each a stage of training sees."""

from collections.abc import Callable, Iterator, Mapping
from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.kinds import (
    arithmetic,
    chat,
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

Maker = Callable[[Random, int], Conversation]

# Shares of tokens: a kind of long documents has fewer of them.
SHORT: Mapping[str, float] = {
    "arithmetic": 0.10,
    "facts": 0.03,
    "counting": 0.03,
    "copy": 0.14,
    "json": 0.10,
    "rename": 0.13,
    "needle": 0.15,
    "follow_up": 0.06,
    "chat": 0.04,
    "tool_one": 0.07,
    "tool_two": 0.05,
    "tool_result": 0.04,
    "tool_none": 0.06,
}
_LONG_NEEDLES, _LONG_TURNS = 0.60, 0.12
_SHORT_REST = 1 - SHORT["needle"] - SHORT["follow_up"]
LONG: Mapping[str, float] = {
    **{kind: share * (1 - _LONG_NEEDLES - _LONG_TURNS) / _SHORT_REST for kind, share in SHORT.items()},
    "needle": _LONG_NEEDLES,
    "follow_up": _LONG_TURNS,
}
MIXTURES: Mapping[str, Mapping[str, float]] = {"short": SHORT, "long": LONG}

_FIRST_SIZE = 200.0  # tokens of a document, until one has been seen
_FRAME, _TOOL = 14, 60  # tokens around what is said, of a tool; measured, rounded
_CHARACTERS_PER_TOKEN = {"facts": 2.7, "json": 2.4, "chat": 2.1}  # measured
_CHARACTERS_PER_TOKEN_ELSE = 1.7

KINDS: Mapping[str, Maker] = {
    "arithmetic": arithmetic.make,
    "facts": facts.make,
    "counting": counting.make,
    "copy": copying.make,
    "json": json_array.make,
    "rename": renaming.make,
    "needle": needle.make,
    "follow_up": follow_up.make,
    "chat": chat.make,
    "tool_one": tool_one.make,
    "tool_two": tool_two.make,
    "tool_result": tool_result.make,
    "tool_none": tool_none.make,
}


def conversations(seed: int, mixture: Mapping[str, float], budget: int) -> Iterator[Conversation]:
    """Endless documents; of all their tokens each kind has about its share in the mixture.

    budget: tokens that a document may have. The same arguments give the same documents.
    """
    rng = Random(seed)
    kinds = list(mixture)
    sizes = dict.fromkeys(kinds, _FIRST_SIZE)
    counts = dict.fromkeys(kinds, 0)  # the size of a kind is the mean of those seen
    while True:
        weights = [mixture[kind] / sizes[kind] for kind in kinds]
        kind = rng.choices(kinds, weights)[0]
        conversation = KINDS[kind](rng, budget)
        counts[kind] += 1
        sizes[kind] += (_size(conversation) - sizes[kind]) / counts[kind]
        yield conversation


def _size(conversation: Conversation) -> float:
    """Tokens of the document, roughly."""
    said = sum(len(message["content"]) + len(message.get("reasoning_content", "")) for message in conversation.messages)
    ratio = _CHARACTERS_PER_TOKEN.get(conversation.kind, _CHARACTERS_PER_TOKEN_ELSE)
    return _FRAME + said / ratio + _TOOL * len(conversation.tools)
