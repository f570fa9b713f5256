"""Marks: things that the tower's own losses ask for at the place where they were drawn, and answers by number."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from twinspark_demo.knowledge import MOST_SHAPES, PICTURE_COLOURS
from twinspark_demo.pictures.picture import Asked, Mark, Picture
from twinspark_demo.vision.canvas import CELL

DIGITS = 3  # of a number
NOTHING = 0
COLOUR_NAMES = tuple(PICTURE_COLOURS)
NUM_THINGS = 1 + DIGITS * 10 + len(COLOUR_NAMES)
ANSWER_SIZES = (*([10] * DIGITS), len(COLOUR_NAMES), MOST_SHAPES)
"""Number of answers: to each digit, to the colour, to the count."""
UNKNOWN = -1


def digit_thing(place: int, digit: int) -> int:
    """A digit at place 0, 1 or 2 of the number."""
    return 1 + place * 10 + digit


def shape_thing(colour: str) -> int:
    """A shape of that colour."""
    return 1 + DIGITS * 10 + COLOUR_NAMES.index(colour)


def things_of(marks: Sequence[Mark], down: int, across: int) -> NDArray[np.uint8]:
    """[down * across] what each cell of 28 x 28 pixels shows: its centre is in a mark, or a mark's in it."""
    things = np.full((down, across), NOTHING, np.uint8)
    for mark in marks:
        left, top, right, bottom = (side / CELL for side in mark.box)
        rows = slice(max(int(np.ceil(top - 0.5)), 0), max(int(np.ceil(bottom - 0.5)), 0))
        columns = slice(max(int(np.ceil(left - 0.5)), 0), max(int(np.ceil(right - 0.5)), 0))
        things[rows, columns] = mark.thing
    for mark in marks:
        row, column = int((mark.box[1] + mark.box[3]) / 2 / CELL), int((mark.box[0] + mark.box[2]) / 2 / CELL)
        things[min(row, down - 1), min(column, across - 1)] = mark.thing
    return things.reshape(-1)


def answer_numbers(picture: Picture) -> NDArray[np.int64]:
    """[5] the answers as numbers, in the order of ANSWER_SIZES; UNKNOWN where the picture does not say."""
    numbers = np.full(len(ANSWER_SIZES), UNKNOWN, np.int64)
    if Asked.NUMBER in picture.answers:
        numbers[:DIGITS] = [int(digit) for digit in picture.answers[Asked.NUMBER]]
    if Asked.COLOUR in picture.answers:
        numbers[DIGITS] = COLOUR_NAMES.index(picture.answers[Asked.COLOUR])
    if Asked.COUNT in picture.answers:
        numbers[DIGITS + 1] = int(picture.answers[Asked.COUNT]) - 1
    return numbers
