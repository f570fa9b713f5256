"""Prompts: questions about drawn pictures, in words that training may have (usual) or has not (held out)."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinspark_demo.evaluation.prompt import Wording, wordings
from twinspark_demo.images.drawing import DRAWN, Drawing

WORDINGS: Mapping[str, tuple[Wording, ...]] = {
    "number": wordings(
        [
            "What number is in the picture?",
            "Which number do you see?",
            "Read the number in this image.",
            "What number is shown?",
            "Tell me the number.",
            "What does the number say?",
            "Please read the number.",
            "Can you read the number in the picture?",
        ],
        [
            "Somebody painted three digits onto my canvas. Which ones?",
            "I forgot my glasses, please read out those digits to me.",
        ],
    ),
    "colour": wordings(
        [
            "What colour is the shape?",
            "Which colour do you see?",
            "Name the colour of the shape in this picture.",
            "What is the colour of the shape?",
            "What color is the shape in the image?",
            "Tell me the colour.",
            "Please name the colour.",
            "Which colour has the shape?",
        ],
        [
            "My sister wants to know which colour this thing was given.",
            "In one word, how would a painter call this colour?",
        ],
    ),
    "count": wordings(
        [
            "How many shapes are in the picture?",
            "How many shapes do you see?",
            "Count the shapes.",
            "How many shapes are there?",
            "Count the shapes in this image.",
            "What is the number of shapes in the picture?",
            "Tell me how many shapes there are.",
            "How many figures are in the image?",
        ],
        [
            "Suppose I cut out every shape: how many would lie on my table?",
            "Would you add up all shapes here for me?",
        ],
    ),
}
BOTH: Mapping[str, tuple[Wording, ...]] = {
    "number": wordings(
        [
            "Which numbers do you see?",
            "Read both numbers.",
            "What numbers are in the two pictures?",
            "Tell me the numbers in both images.",
        ],
        ["First one picture, then the other: which digits stand on them?"],
    ),
    "colour": wordings(
        [
            "Which colours do you see?",
            "Name both colours.",
            "What colours are in the two pictures?",
            "Tell me the colours in both images.",
        ],
        ["First one picture, then the other: how are their shapes coloured?"],
    ),
}
JOINT = ", "
_OTHER = {"number": ("colour", "count"), "colour": ("number",), "count": ("number",)}


@dataclass(frozen=True, slots=True)
class ImagePrompt:
    """One question with its pictures, as a client of the chat API would send it."""

    kind: str
    text: str
    drawings: tuple[Drawing, ...]
    expected: str
    is_before: bool  # the question stands before the pictures
    held_out: bool

    @property
    def messages(self) -> list[dict[str, Any]]:
        """For the chat template."""
        text, images = {"type": "text", "text": self.text}, [{"type": "image"} for _ in self.drawings]
        return [{"role": "user", "content": [text, *images] if self.is_before else [*images, text]}]


def draw_prompts(kind: str, number: int, seed: int) -> Iterator[ImagePrompt]:
    """That many of one kind; question and pictures change places each time, wordings go round."""
    rng = random.Random(f"{seed} {kind}")
    for place in range(number):
        wording, drawings, expected = KINDS[kind](rng, place)
        yield ImagePrompt(kind, wording.text, tuple(drawings), expected, place % 2 == 0, wording.held_out)


def _pick(choices: Sequence[Wording], place: int) -> Wording:
    """In turn, each before and after the pictures."""
    return choices[place // 2 % len(choices)]


def _one(asked: str) -> Callable[[random.Random, int], tuple[Wording, list[Drawing], str]]:
    def draw(rng: random.Random, place: int) -> tuple[Wording, list[Drawing], str]:
        drawing = DRAWN[asked](rng, None)
        return _pick(WORDINGS[asked], place), [drawing], drawing.answer

    return draw


def _two_both(rng: random.Random, place: int) -> tuple[Wording, list[Drawing], str]:
    """Both answers, in the order of the pictures."""
    asked = list(BOTH)[place // 2 % 2]
    drawings = [DRAWN[asked](rng, None) for _ in range(2)]
    return rng.choice(BOTH[asked]), drawings, JOINT.join(drawing.answer for drawing in drawings)


def _two_either(rng: random.Random, place: int) -> tuple[Wording, list[Drawing], str]:
    """Two pictures in either order, of which one answers."""
    asked = list(WORDINGS)[place // 2 % 3]
    drawing, other = DRAWN[asked](rng, None), DRAWN[rng.choice(_OTHER[asked])](rng, None)
    drawings = [drawing, other] if rng.random() < 0.5 else [other, drawing]
    return rng.choice(WORDINGS[asked]), drawings, drawing.answer


KINDS: Mapping[str, Callable[[random.Random, int], tuple[Wording, list[Drawing], str]]] = {
    "number": _one("number"),
    "colour": _one("colour"),
    "count": _one("count"),
    "two_both": _two_both,
    "two_either": _two_either,
}
