"""Patches against the published processor, as Transformers has it."""

import numpy as np
import pytest
from PIL import Image
from transformers.models.glm5_next.image_processing_pil_glm5_next import Glm5NextImageProcessorPil

from support.pictures import noise
from support.planted_fault import Fault, planted
from twinspark_demo.vision import cut_patches, pixel_values
from twinspark_demo.vision.canvas import canvas_of

PATCHES = "twinspark_demo.vision.patches"
SIZES = [
    *((112, 112), (113, 140), (448, 448), (447, 113), (300, 200), (224, 224)),
    *((20, 20), (1, 1), (111, 112), (30, 200), (3, 900), (1024, 768), (1920, 1080)),
]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_pixel_values_are_those_of_the_published_processor(size: tuple[int, int], mode: str) -> None:
    assert_as_published(noise(size, seed=size[0], mode=mode))


def assert_as_published(image: Image.Image) -> None:
    expected = Glm5NextImageProcessorPil()(images=image.convert("RGB"), return_tensors="np")
    patches = cut_patches(image)
    np.testing.assert_allclose(pixel_values(patches), expected["pixel_values"], rtol=0, atol=1e-6)
    assert [1, *(patches.places.max(0) + 1)] == expected["image_grid_thw"][0].tolist()


@pytest.mark.parametrize(
    "fault",
    [
        Fault("row-by-row", PATCHES, "transpose(0, 3, 1, 4, 6, 2, 5)", "transpose(0, 1, 3, 4, 6, 2, 5)"),
        Fault("pixels-transposed", PATCHES, "transpose(0, 3, 1, 4, 6, 2, 5)", "transpose(0, 3, 1, 4, 6, 5, 2)"),
        Fault("blue-for-red", PATCHES, "np.asarray(content)", "np.asarray(content)[..., ::-1]"),
        Fault("another-mean", PATCHES, "/ 255 - mean)", "/ 255 - 0.5)"),
        Fault("another-deviation", PATCHES, "mean) / deviation", "mean) / 0.5"),
        Fault("bilinear", PATCHES, "Resampling.BICUBIC", "Resampling.BILINEAR"),
    ],
    ids=lambda fault: fault.name,
)
def test_the_comparison_finds(fault: Fault) -> None:
    with planted(fault), pytest.raises(AssertionError):
        assert_as_published(noise((30, 200)))


@pytest.mark.parametrize(
    ("size", "canvas", "rows"),
    [
        ((1024, 768), (1036, 784), 1036),
        ((3840, 2160), (3332, 1876), 7973),
        ((1920, 1080), (1932, 1092), 2691),
        ((2560, 1440), (2576, 1456), 4784),
        ((800, 600), (812, 616), 638),
        ((512, 512), (532, 532), 361),
        ((224, 224), (224, 224), 64),
        ((60, 60), (112, 112), 16),
    ],
)
def test_rows_of_common_sizes(size: tuple[int, int], canvas: tuple[int, int], rows: int) -> None:
    found = canvas_of(size[1], size[0])
    assert ((found.width, found.height), found.num_rows) == (canvas, rows)


def test_places_name_the_patch_that_the_values_are_of() -> None:
    image = noise((196, 140))
    pixels = np.asarray(image)
    patches = cut_patches(image)
    assert len(patches.values) == 10 * 14
    for values, (row, column) in zip(patches.values, patches.places, strict=True):
        cut = pixels[14 * row : 14 * row + 14, 14 * column : 14 * column + 14]
        assert np.array_equal(values, cut.transpose(2, 0, 1))
