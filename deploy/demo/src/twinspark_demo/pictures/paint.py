"""Paint: colours as they come out in pictures, canvases, and the trip through JPEG."""

from io import BytesIO
from random import Random

from PIL import Image

from twinspark_demo.knowledge import PICTURE_COLOURS, PICTURE_SIDES

Paint = tuple[int, int, int]

LEAST_CONTRAST = 90  # of lightness, 0 to 255, between digits and what is behind them
_JITTER = 14
_SMALL_SHARE, _SMALL_SIDE = 0.5, 280
_JPEG_SHARE, _LEAST_QUALITY = 0.5, 45
_NEUTRAL = {"light": (205, 255), "dark": (0, 60)}


def draw_size(rng: Random) -> tuple[int, int]:
    """Width and height of a canvas; smaller ones more often than in a fair draw, they cost less."""
    low, high = PICTURE_SIDES
    most = _SMALL_SIDE if rng.random() < _SMALL_SHARE else high
    return rng.randint(low, most), rng.randint(low, most)


def named(rng: Random, colour: str) -> Paint:
    """A colour of that name, never twice quite the same."""
    red, green, blue = (min(max(part + rng.randint(-_JITTER, _JITTER), 0), 255) for part in PICTURE_COLOURS[colour])
    if colour in ("black", "white", "grey"):
        return red, red, red
    return red, green, blue


def any_paint(rng: Random) -> Paint:
    """Any colour at all."""
    return rng.randrange(256), rng.randrange(256), rng.randrange(256)


def lightness(paint: Paint) -> float:
    """0 to 255."""
    return 0.299 * paint[0] + 0.587 * paint[1] + 0.114 * paint[2]


def contrasting(rng: Random) -> tuple[Paint, Paint]:
    """Foreground and background, dark on light or light on dark as often; half of them black, white and greys."""
    while True:
        if rng.random() < 0.5:
            dark, light = rng.randint(0, 90), rng.randint(165, 255)
            pair = [(dark,) * 3, (light,) * 3]
        else:
            pair = [any_paint(rng), any_paint(rng)]
        if rng.random() < 0.5:
            pair.reverse()
        if abs(lightness(pair[0]) - lightness(pair[1])) >= LEAST_CONTRAST:
            return pair[0], pair[1]


def behind_shapes(rng: Random, colours: set[str]) -> Paint:
    """A background on which shapes of these colours are seen: white or black or nearly so; not both among them."""
    sorts = ["light"] * ("white" not in colours) + ["dark"] * ("black" not in colours)
    level = rng.randint(*_NEUTRAL[rng.choice(sorts)])
    if rng.random() < 0.3:
        return level, level, level
    red, green, blue = (min(max(level + rng.randint(-12, 12), 0), 255) for _ in range(3))
    return red, green, blue


def through_jpeg(rng: Random, image: Image.Image) -> Image.Image:
    """Half of the images as they are (PNG loses nothing), half after JPEG of some quality."""
    if rng.random() >= _JPEG_SHARE:
        return image
    file = BytesIO()
    image.save(file, "JPEG", quality=rng.randint(_LEAST_QUALITY, 95), subsampling=rng.choice((0, 2)))
    return Image.open(file).convert("RGB")
