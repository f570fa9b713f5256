"""Picture: one drawn image, the questions that it answers, and where in it the answers lie."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from PIL import Image


class Asked(StrEnum):
    """What a picture may be asked for."""

    NUMBER = "number"
    COLOUR = "colour"
    COUNT = "count"


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing that was drawn: its box in pixels, and which of the kinds of thing (see marks.py) it is."""

    box: tuple[float, float, float, float]  # left, top, right, bottom
    thing: int


@dataclass(frozen=True, slots=True)
class Picture:
    """An RGB image of 112 to 448 pixels a side."""

    image: Image.Image
    answers: Mapping[Asked, str]
    marks: tuple[Mark, ...]
