"""Pictures for tests that look at pixels and not at what they show."""

import numpy as np
from PIL import Image


def noise(size: tuple[int, int], seed: int = 0, mode: str = "RGB") -> Image.Image:
    """Random pixels; size is (width, height)."""
    width, height = size
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 4), dtype=np.uint8)
    return Image.fromarray(pixels, "RGBA").convert(mode)
