"""Pictures of a number of three digits in Pillow's own scalable font."""

import math
from functools import cache
from random import Random

from PIL import Image, ImageDraw, ImageFont

from twinspark_demo.knowledge import DIGIT_SIZES
from twinspark_demo.pictures.marks import DIGITS, digit_thing
from twinspark_demo.pictures.paint import contrasting, draw_size, through_jpeg
from twinspark_demo.pictures.picture import Asked, Mark, Picture

_MARGIN = 2  # pixels between the digits and the edge
_SMALL_SHARE = 0.5  # of pictures with a size drawn by its logarithm: small digits are the hard ones


def draw_number(rng: Random) -> Picture:
    """A number of any size that fits, at any place, dark on light or light on dark."""
    number = str(rng.randint(100, 999))
    width, height = draw_size(rng)
    font = _font(_fitting_size(rng, width, height))
    left, top, right, bottom = font.getbbox(number)
    x = rng.uniform(_MARGIN, width - _MARGIN - (right - left)) - left
    y = rng.uniform(_MARGIN, height - _MARGIN - (bottom - top)) - top
    if rng.random() < 0.5:
        x, y = round(x), round(y)
    paint, behind = contrasting(rng)
    image = Image.new("RGB", (width, height), behind)
    ImageDraw.Draw(image).text((x, y), number, fill=paint, font=font)
    starts = [font.getlength(number[:place]) for place in range(DIGITS + 1)]
    marks = tuple(
        Mark((x + starts[place], y + top, x + starts[place + 1], y + bottom), digit_thing(place, int(number[place])))
        for place in range(DIGITS)
    )
    return Picture(through_jpeg(rng, image), {Asked.NUMBER: number}, marks)


def _fitting_size(rng: Random, width: int, height: int) -> int:
    low, high = DIGIT_SIZES
    per_pixel = _font(high).getlength("0") * DIGITS / high
    high = min(high, int((width - 2 * _MARGIN - 4) / per_pixel), height - 2 * _MARGIN)
    if rng.random() < _SMALL_SHARE:
        return int(low * math.exp(math.log(high / low) * rng.random()) + 0.5)
    return rng.randint(low, high)


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    font = ImageFont.load_default(size)
    if not isinstance(font, ImageFont.FreeTypeFont):
        raise RuntimeError("Pillow was built without FreeType")
    return font
