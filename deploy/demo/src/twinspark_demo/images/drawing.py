"""Drawing: the pictures of the evaluation, in code of their own."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO

from PIL import Image, ImageDraw, ImageFont

from twinspark_demo.knowledge import DIGIT_SIZES, MOST_SHAPES, PICTURE_COLOURS, PICTURE_SIDES

Colour = tuple[int, int, int]
Size = tuple[int, int]
_EDGE = 4
_DARK, _LIGHT = (0, 70), (185, 255)


@dataclass(frozen=True, slots=True)
class Drawing:
    """An encoded picture and what it shows."""

    file: bytes
    answer: str


def number(rng: random.Random, size: Size | None = None) -> Drawing:
    """Three digits in Pillow's own scalable font, at any place."""
    width, height = size or _size(rng)
    digits = str(rng.randint(100, 999))
    fonts = [ImageFont.load_default(points) for points in range(DIGIT_SIZES[0], DIGIT_SIZES[1] + 1, 4)]
    boxes = [font.getbbox(digits) for font in fonts]
    fitting = [
        (font, box)
        for font, box in zip(fonts, boxes, strict=True)
        if box[2] - box[0] + 2 * _EDGE <= width and box[3] - box[1] + 2 * _EDGE <= height
    ]
    font, (left, top, right, bottom) = rng.choice(fitting)
    ink, paper = _ink_and_paper(rng)
    canvas = Image.new("RGB", (width, height), paper)
    x = rng.randint(_EDGE, width - _EDGE - round(right - left)) - left
    y = rng.randint(_EDGE, height - _EDGE - round(bottom - top)) - top
    ImageDraw.Draw(canvas).text((x, y), digits, font=font, fill=ink)
    return Drawing(_encoded(rng, canvas), digits)


def colour(rng: random.Random, size: Size | None = None) -> Drawing:
    """One shape of a colour on a light or dark ground."""
    width, height = size or _size(rng)
    name = rng.choice(list(PICTURE_COLOURS))
    canvas = Image.new("RGB", (width, height), _ground(rng, [name]))
    span = rng.randint(28, min(width, height) - 2 * _EDGE)
    x, y = rng.randint(_EDGE, width - _EDGE - span), rng.randint(_EDGE, height - _EDGE - span)
    _stamp(ImageDraw.Draw(canvas), rng.choice(list(_STAMPS)), (x, y, x + span, y + span), _shade(rng, name))
    return Drawing(_encoded(rng, canvas), name)


def count(rng: random.Random, size: Size | None = None) -> Drawing:
    """One to six shapes that do not touch: each in a cell of its own of a grid."""
    width, height = size or _size(rng)
    how_many = rng.randint(1, MOST_SHAPES)
    left_out = rng.choice(("black", "white"))
    names = [rng.choice([name for name in PICTURE_COLOURS if name != left_out]) for _ in range(how_many)]
    if rng.random() < 0.5:
        names = names[:1] * how_many
    same = rng.choice(list(_STAMPS)) if rng.random() < 0.5 else None
    canvas = Image.new("RGB", (width, height), _ground(rng, names))
    pen = ImageDraw.Draw(canvas)
    columns, lines = (3, 2) if width >= height else (2, 3)
    across, down = width // columns, height // lines
    for cell, name in zip(rng.sample(range(columns * lines), how_many), names, strict=True):
        room = min(across, down) - 2 * _EDGE
        span = rng.randint(min(16, room), min(room, 120))
        x = (cell % columns) * across + rng.randint(_EDGE, across - _EDGE - span)
        y = (cell // columns) * down + rng.randint(_EDGE, down - _EDGE - span)
        _stamp(pen, same or rng.choice(list(_STAMPS)), (x, y, x + span, y + span), _shade(rng, name))
    return Drawing(_encoded(rng, canvas), str(how_many))


DRAWN: Mapping[str, Callable[[random.Random, Size | None], Drawing]] = {
    "number": number,
    "colour": colour,
    "count": count,
}


def _size(rng: random.Random) -> Size:
    return rng.randint(*PICTURE_SIDES), rng.randint(*PICTURE_SIDES)


def _encoded(rng: random.Random, canvas: Image.Image) -> bytes:
    file = BytesIO()
    if rng.random() < 0.5:
        canvas.save(file, "PNG")
    else:
        canvas.save(file, "JPEG", quality=rng.choice((60, 75, 90)))
    return file.getvalue()


def _ink_and_paper(rng: random.Random) -> tuple[Colour, Colour]:
    """Dark on light or light on dark."""
    dark, light = (_tint(rng, rng.randint(*level)) for level in (_DARK, _LIGHT))
    return (dark, light) if rng.random() < 0.5 else (light, dark)


def _tint(rng: random.Random, level: int) -> Colour:
    red, green, blue = (min(max(level + rng.randint(-25, 25), 0), 255) for _ in range(3))
    return red, green, blue


def _ground(rng: random.Random, names: list[str]) -> Colour:
    """White or nearly, or black or nearly, whichever is not among the names."""
    is_light = "white" not in names and ("black" in names or rng.random() < 0.5)
    level = rng.randint(225, 255) if is_light else rng.randint(0, 30)
    return level, level, level


def _shade(rng: random.Random, name: str) -> Colour:
    change = rng.randint(-10, 10)
    red, green, blue = (min(max(part + change, 0), 255) for part in PICTURE_COLOURS[name])
    return red, green, blue


Box = tuple[int, int, int, int]


def _disc(pen: ImageDraw.ImageDraw, box: Box, fill: Colour) -> None:
    pen.ellipse(box, fill=fill)


def _block(pen: ImageDraw.ImageDraw, box: Box, fill: Colour) -> None:
    pen.rectangle(box, fill=fill)


def _wedge(pen: ImageDraw.ImageDraw, box: Box, fill: Colour) -> None:
    left, top, right, bottom = box
    pen.polygon([(left, bottom), (right, bottom), ((left + right) / 2, top)], fill=fill)


def _kite(pen: ImageDraw.ImageDraw, box: Box, fill: Colour) -> None:
    left, top, right, bottom = box
    middle = ((left + right) / 2, (top + bottom) / 2)
    pen.polygon([(left, middle[1]), (middle[0], top), (right, middle[1]), (middle[0], bottom)], fill=fill)


_STAMPS = {"disc": _disc, "block": _block, "wedge": _wedge, "kite": _kite}


def _stamp(pen: ImageDraw.ImageDraw, sort: str, box: Box, fill: Colour) -> None:
    _STAMPS[sort](pen, box, fill)
