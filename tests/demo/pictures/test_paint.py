"""Colours as they are painted: seen on their background, near their name, and the same after JPEG."""

from random import Random

import numpy as np
from PIL import Image

from twinspark_demo.knowledge import PICTURE_COLOURS
from twinspark_demo.pictures.paint import LEAST_CONTRAST, behind_shapes, contrasting, lightness, named, through_jpeg


def test_a_painted_colour_is_nearer_to_its_name_than_to_others() -> None:
    rng = Random(1)
    for name in PICTURE_COLOURS:
        for _ in range(100):
            painted = np.array(named(rng, name))
            away = {other: np.abs(painted - np.array(value)).sum() for other, value in PICTURE_COLOURS.items()}
            assert min(away, key=lambda other: away[other]) == name


def test_digits_differ_in_lightness_from_what_is_behind_them_either_way() -> None:
    rng = Random(2)
    pairs = [contrasting(rng) for _ in range(400)]
    assert min(abs(lightness(ink) - lightness(paper)) for ink, paper in pairs) >= LEAST_CONTRAST
    assert 150 < sum(lightness(ink) < lightness(paper) for ink, paper in pairs) < 250


def test_white_shapes_lie_on_dark_ground_and_black_ones_on_light() -> None:
    rng = Random(3)
    assert all(max(behind_shapes(rng, {"white", "red"})) < 100 for _ in range(100))
    assert all(min(behind_shapes(rng, {"black", "red"})) > 150 for _ in range(100))


def test_jpeg_changes_half_of_the_pictures_a_little() -> None:
    rng = Random(4)
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (60, 90, 3), dtype=np.uint8)).resize((300, 200))
    results = [through_jpeg(rng, image) for _ in range(100)]
    changed = [result for result in results if result.tobytes() != image.tobytes()]
    assert 30 < len(changed) < 70
    assert all(result.size == image.size and result.mode == "RGB" for result in results)
    assert max(np.abs(np.asarray(each, int) - np.asarray(image, int)).mean() for each in changed) < 20
