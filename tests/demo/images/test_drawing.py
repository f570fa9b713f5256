"""The evaluation's pictures show what they say, in all sizes, brightnesses and files that are asked for."""

import random
from collections.abc import Callable
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from support.blobs import count_blobs
from twinspark_demo.images.drawing import DRAWN, Drawing
from twinspark_demo.knowledge import MOST_SHAPES, PICTURE_COLOURS, PICTURE_SIDES

COUNT = 120
Draw = Callable[[str], list[Drawing]]


@pytest.fixture(scope="module")
def draw() -> Draw:
    """That many drawings of a kind."""
    return lambda kind: [DRAWN[kind](random.Random(f"{kind} {place}"), None) for place in range(COUNT)]


def opened(drawing: Drawing) -> Image.Image:
    return Image.open(BytesIO(drawing.file))


def lossless(drawings: list[Drawing]) -> list[tuple[Image.Image, str]]:
    """Pictures as drawn, with their answers: those that are PNG."""
    return [(opened(drawing), drawing.answer) for drawing in drawings if opened(drawing).format == "PNG"]


def inked(image: Image.Image) -> np.ndarray:
    """[height, width] bool: not of the background's colour."""
    pixels = np.asarray(image)
    found: np.ndarray = (pixels != pixels[0, 0]).any(-1)
    return found


@pytest.mark.parametrize("kind", list(DRAWN))
def test_files_are_png_and_jpeg_of_all_sizes_on_dark_and_light(draw: Draw, kind: str) -> None:
    images = [opened(drawing) for drawing in draw(kind)]
    formats = [image.format for image in images]
    assert min(formats.count("PNG"), formats.count("JPEG")) > COUNT / 4
    low, high = PICTURE_SIDES
    sides = [side for image in images for side in image.size]
    assert low <= min(sides) < low + 20 and high - 20 < max(sides) <= high
    light = sum(np.asarray(image)[0, 0].mean() > 127 for image in images)
    assert COUNT / 4 < light < 3 * COUNT / 4


def test_a_number_lies_whole_in_its_picture_and_is_small_or_large(draw: Draw) -> None:
    heights = []
    for image, answer in lossless(draw("number")):
        assert len(answer) == 3 and answer.isdigit()
        rows, columns = np.nonzero(inked(image))
        assert min(rows.min(), columns.min()) > 0
        assert rows.max() < image.height - 1 and columns.max() < image.width - 1
        heights.append(rows.max() - rows.min())
    assert min(heights) < 22 and max(heights) > 55


def test_as_many_shapes_are_drawn_as_the_answer_says(draw: Draw) -> None:
    drawings = lossless(draw("count"))
    assert [str(count_blobs(image)) for image, _ in drawings] == [answer for _, answer in drawings]
    assert {int(answer) for _, answer in drawings} == set(range(1, MOST_SHAPES + 1))


def test_the_one_shape_has_the_colour_that_is_named(draw: Draw) -> None:
    drawings = lossless(draw("colour"))
    for image, answer in drawings:
        assert count_blobs(image) == 1
        ink = np.asarray(image)[inked(image)].mean(0)
        assert min(PICTURE_COLOURS, key=lambda name: np.abs(ink - PICTURE_COLOURS[name]).sum()) == answer
    assert len({answer for _, answer in drawings}) > 8


@pytest.mark.parametrize("kind", list(DRAWN))
def test_a_size_may_be_asked_for(kind: str) -> None:
    assert opened(DRAWN[kind](random.Random(1), (168, 252))).size == (168, 252)
