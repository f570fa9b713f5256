"""Pictures of numbers: all that is drawn is three digits, where the marks say, dark on light or light on dark."""

from random import Random

import numpy as np
import pytest

from twinspark_demo.knowledge import PICTURE_SIDES
from twinspark_demo.pictures.numbers import draw_number
from twinspark_demo.pictures.paint import lightness
from twinspark_demo.pictures.picture import Asked, Picture

COUNT = 60


@pytest.fixture
def pictures(lossless: None) -> list[Picture]:
    rng = Random(4)
    return [draw_number(rng) for _ in range(COUNT)]


def inked(picture: Picture) -> np.ndarray:
    """[height, width] bool: pixels that are not background."""
    pixels = np.asarray(picture.image)
    found: np.ndarray = (pixels != pixels[0, 0]).any(-1)
    return found


def test_ink_lies_in_the_marks_and_in_each_of_them(pictures: list[Picture]) -> None:
    for picture in pictures:
        ink, outside = inked(picture), np.ones(picture.image.size[::-1], bool)
        for mark in picture.marks:
            left, top, right, bottom = mark.box
            box = slice(int(top) - 2, int(bottom) + 3), slice(max(int(left) - 2, 0), int(right) + 3)
            assert ink[box].any()
            outside[box] = False
        assert len(picture.marks) == 3
        assert not (ink & outside).any()


def test_marks_name_the_digits_from_left_to_right(pictures: list[Picture]) -> None:
    for picture in pictures:
        digits = [(mark.thing - 1) % 10 for mark in picture.marks]
        assert "".join(map(str, digits)) == picture.answers[Asked.NUMBER]
        assert [(mark.thing - 1) // 10 for mark in picture.marks] == [0, 1, 2]
        assert sorted(picture.marks, key=lambda mark: mark.box[0]) == list(picture.marks)


def test_sides_fonts_and_brightness_span_what_is_asked_for(pictures: list[Picture]) -> None:
    low, high = PICTURE_SIDES
    sides = [side for picture in pictures for side in picture.image.size]
    assert low <= min(sides) < low + 20 and high - 40 < max(sides) <= high
    heights = [mark.box[3] - mark.box[1] for picture in pictures for mark in picture.marks]
    assert min(heights) < 20 and max(heights) > 60
    dark = 0
    for picture in pictures:
        pixels = np.asarray(picture.image)
        ink, paper = lightness(pixels[inked(picture)].mean(0)), lightness(pixels[0, 0])
        assert abs(ink - paper) > 40  # strokes of small digits mix with the background
        dark += ink < paper
    assert COUNT / 4 < dark < 3 * COUNT / 4
