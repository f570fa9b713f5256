"""Pictures of shapes: as many as the answer says, apart from one another, of the colour that is named."""

from random import Random

import numpy as np
import pytest

from support.blobs import count_blobs
from twinspark_demo.knowledge import MOST_SHAPES, PICTURE_COLOURS
from twinspark_demo.pictures.marks import COLOUR_NAMES, shape_thing
from twinspark_demo.pictures.picture import Asked, Picture
from twinspark_demo.pictures.shapes import draw_colour, draw_count


def nearest_name(pixel: np.ndarray) -> str:
    return min(PICTURE_COLOURS, key=lambda name: float(np.abs(pixel - np.array(PICTURE_COLOURS[name])).sum()))


def colours_at_marks(picture: Picture) -> list[str]:
    """The colour in the middle of each mark."""
    pixels = np.asarray(picture.image, np.int16)
    middles = [((box[0] + box[2]) / 2, (box[1] + box[3]) / 2) for box in (mark.box for mark in picture.marks)]
    return [nearest_name(pixels[int(y), int(x)]) for x, y in middles]


@pytest.mark.usefixtures("lossless")
def test_as_many_shapes_are_drawn_as_the_answer_says() -> None:
    rng = Random(8)
    seen = set()
    for _ in range(40):
        picture = draw_count(rng)
        assert str(count_blobs(picture.image)) == picture.answers[Asked.COUNT]
        assert len(picture.marks) == int(picture.answers[Asked.COUNT])
        seen.add(len(picture.marks))
    assert seen == set(range(1, MOST_SHAPES + 1))


@pytest.mark.usefixtures("lossless")
def test_shapes_have_the_colours_that_their_marks_name() -> None:
    rng = Random(9)
    seen = set()
    for place in range(100):
        picture = (draw_colour, draw_count)[place % 2](rng)
        colours = colours_at_marks(picture)
        assert [mark.thing for mark in picture.marks] == [shape_thing(colour) for colour in colours]
        if Asked.COLOUR in picture.answers:
            assert set(colours) == {picture.answers[Asked.COLOUR]}
        else:
            assert len(set(colours)) > 1
        seen |= set(colours)
    assert seen == set(COLOUR_NAMES)


def test_a_canvas_full_of_one_colour_asks_for_no_count() -> None:
    rng = Random(10)
    full = [picture for picture in (draw_colour(rng) for _ in range(100)) if Asked.COUNT not in picture.answers]
    assert 5 < len(full) < 30
    assert all(picture.marks[0].box == (0, 0, *picture.image.size) for picture in full)
