"""Shapes in a picture, counted without knowing how it was drawn."""

import numpy as np
from PIL import Image, ImageDraw, ImageFilter


def count_blobs(image: Image.Image) -> int:
    """Areas that hang together and differ from the pixel in the upper left corner; they lie three pixels apart."""
    pixels = np.asarray(image)
    mask = Image.fromarray(np.where((pixels != pixels[0, 0]).any(-1), 255, 0).astype(np.uint8))
    mask = mask.filter(ImageFilter.MaxFilter(3))  # thin corners hang on by their pixels' edges only
    found = 0
    while mask.getbbox() is not None:
        row, column = np.argwhere(np.asarray(mask))[0]
        ImageDraw.floodfill(mask, (int(column), int(row)), 0)
        found += 1
    return found
