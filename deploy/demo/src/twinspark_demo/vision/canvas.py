"""The canvas of an image: which size it is brought to before it is cut into patches.

Rules of the published processor: sides are multiples of 28, between 16 and 8,000 rows for the language model; an image
is never enlarged but to reach 16 rows, never warped, and padded at the right and the bottom.
"""

import math
from dataclasses import dataclass

PATCH = 14
FRAMES = 2
"""Frames of one patch; a still image counts twice."""
CELL = 2 * PATCH
LEAST_ROWS, MOST_ROWS = 16, 8000
_LEAST_PIXELS, _MOST_PIXELS = (rows * FRAMES * CELL**2 for rows in (LEAST_ROWS, MOST_ROWS))


@dataclass(frozen=True, slots=True)
class Canvas:
    """Sizes in pixels: of the canvas, and of the image that lies in its upper left corner."""

    height: int
    width: int
    content_height: int
    content_width: int

    @property
    def num_rows(self) -> int:
        """Rows for the language model."""
        return (self.height // CELL) * (self.width // CELL)


def canvas_of(height: int, width: int) -> Canvas:
    """The canvas of an image of height x width pixels, at least 1 x 1."""
    canvas_height, canvas_width = _aligned(height), _aligned(width)
    if FRAMES * canvas_height * canvas_width < _LEAST_PIXELS:
        scale = math.sqrt(_LEAST_PIXELS / (FRAMES * height * width))
        canvas_height, canvas_width = (_aligned(max(1, math.ceil(side * scale))) for side in (height, width))
    if FRAMES * canvas_height * canvas_width > _MOST_PIXELS:
        canvas_height, canvas_width = _largest_within(height, width)
    scale = min(canvas_height / height, canvas_width / width)
    if FRAMES * height * width >= _LEAST_PIXELS:
        scale = min(1.0, scale)
    return Canvas(
        canvas_height,
        canvas_width,
        max(1, min(canvas_height, math.floor(height * scale))),
        max(1, min(canvas_width, math.floor(width * scale))),
    )


def _largest_within(height: int, width: int) -> tuple[int, int]:
    """The canvas of the tallest content that the budget allows, by halving."""
    low, high = 1, height
    best = CELL, CELL
    while low <= high:
        content = (low + high) // 2
        candidate = _aligned(content), _aligned(max(1, math.floor(width * content / height)))
        if FRAMES * candidate[0] * candidate[1] <= _MOST_PIXELS:
            best, low = candidate, content + 1
        else:
            high = content - 1
    return best


def _aligned(side: int) -> int:
    return math.ceil(side / CELL) * CELL
