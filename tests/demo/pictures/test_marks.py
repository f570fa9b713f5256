"""What each cell of a picture shows, and answers as numbers."""

import numpy as np
from PIL import Image

from twinspark_demo.pictures.marks import ANSWER_SIZES, NOTHING, UNKNOWN, answer_numbers, digit_thing, things_of
from twinspark_demo.pictures.picture import Asked, Mark, Picture


def test_a_cell_shows_the_mark_that_its_centre_is_in() -> None:
    marks = [Mark((28, 0, 84, 28), digit_thing(0, 7)), Mark((30, 60, 34, 64), digit_thing(2, 1))]
    expected = np.zeros((3, 4), np.uint8)
    expected[0, 1:3] = digit_thing(0, 7)
    expected[2, 1] = digit_thing(2, 1)  # smaller than a cell: the cell that its own centre is in
    assert np.array_equal(things_of(marks, 3, 4).reshape(3, 4), expected)
    assert NOTHING == 0


def test_a_mark_at_the_last_edge_is_in_the_last_cell() -> None:
    found = things_of([Mark((111, 111, 113, 113), 5)], 4, 4)
    assert found[-1] == 5 and (found[:-1] == NOTHING).all()


def test_answers_are_numbers_from_nought_and_unknown_where_none_is_given() -> None:
    image = Image.new("RGB", (112, 112))
    number = answer_numbers(Picture(image, {Asked.NUMBER: "407"}, ()))
    assert number.tolist() == [4, 0, 7, UNKNOWN, UNKNOWN]
    shapes = answer_numbers(Picture(image, {Asked.COUNT: "6", Asked.COLOUR: "grey"}, ()))
    assert shapes.tolist() == [UNKNOWN] * 3 + [ANSWER_SIZES[3] - 1, 5]
