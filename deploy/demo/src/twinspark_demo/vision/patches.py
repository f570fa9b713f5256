"""Patches: an image as the tower reads it, in the order of the published processor."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from twinspark_demo.vision.canvas import CELL, FRAMES, PATCH, canvas_of

MEAN = (0.48145466, 0.4578275, 0.40821073)
STANDARD_DEVIATION = (0.26862954, 0.26130258, 0.27577711)


@dataclass(frozen=True, slots=True)
class Patches:
    """One image of height x width patches. Four consecutive patches are a square of two by two: one merged row."""

    values: NDArray[np.uint8]  # [N, 3, 14, 14]
    places: NDArray[np.int16]  # [N, 2] row and column of each patch in the image

    @property
    def num_rows(self) -> int:
        """Rows for the language model."""
        return len(self.values) // 4


def cut_patches(image: Image.Image) -> Patches:
    """The image on its canvas, cut. Other modes than RGB are converted, as Pillow does it."""
    canvas = canvas_of(image.height, image.width)
    content = image.convert("RGB")
    if content.size != (canvas.content_width, canvas.content_height):
        content = content.resize((canvas.content_width, canvas.content_height), Image.Resampling.BICUBIC)
    pixels = np.zeros((canvas.height, canvas.width, 3), np.uint8)
    pixels[: canvas.content_height, : canvas.content_width] = np.asarray(content)
    down, across = canvas.height // CELL, canvas.width // CELL
    split = pixels.reshape(down, 2, PATCH, across, 2, PATCH, 3)
    values = split.transpose(0, 3, 1, 4, 6, 2, 5).reshape(-1, 3, PATCH, PATCH)
    grid = np.stack(np.meshgrid(np.arange(2 * down), np.arange(2 * across), indexing="ij"), -1).astype(np.int16)
    places = grid.reshape(down, 2, across, 2, 2).transpose(0, 2, 1, 3, 4).reshape(-1, 2)
    return Patches(values, places)


def pixel_values(patches: Patches) -> NDArray[np.float32]:
    """[N, 1176], the published `pixel_values`: normalized, and the one frame twice."""
    mean, deviation = (np.array(values, np.float32)[:, None, None] for values in (MEAN, STANDARD_DEVIATION))
    normalized = (patches.values.astype(np.float32) / 255 - mean) / deviation
    return np.repeat(normalized[:, :, None], FRAMES, axis=2).reshape(len(normalized), -1).astype(np.float32)
