"""Pictures of shapes: one whose colour is asked for, or up to six to count."""

import math
from collections.abc import Sequence
from random import Random

from PIL import Image, ImageDraw

from twinspark_demo.knowledge import MOST_SHAPES
from twinspark_demo.pictures.marks import COLOUR_NAMES, shape_thing
from twinspark_demo.pictures.paint import Paint, behind_shapes, draw_size, named, through_jpeg
from twinspark_demo.pictures.picture import Asked, Mark, Picture

SORTS = ("circle", "square", "triangle", "rectangle", "ellipse", "diamond", "star", "hexagon")
_LEAST_RADIUS = 7.0
_GAP = 4.0  # pixels between shapes and to the edge, at least
_FILLED_SHARE = 0.15  # of the pictures of one colour: nothing else is on them
_ONE_COLOUR_SHARE, _ONE_SORT_SHARE = 0.5, 0.5

Circle = tuple[float, float, float]  # x, y, radius


def draw_colour(rng: Random) -> Picture:
    """One shape of a colour, or a canvas full of it."""
    colour = rng.choice(COLOUR_NAMES)
    width, height = draw_size(rng)
    if rng.random() < _FILLED_SHARE:
        image = Image.new("RGB", (width, height), named(rng, colour))
        return Picture(
            through_jpeg(rng, image), {Asked.COLOUR: colour}, (Mark((0, 0, width, height), shape_thing(colour)),)
        )
    return _picture(rng, (width, height), [colour])


def draw_count(rng: Random) -> Picture:
    """One to six shapes that do not touch, of one colour or of several."""
    count = rng.randint(1, MOST_SHAPES)
    if rng.random() < _ONE_COLOUR_SHARE:
        colours = [rng.choice(COLOUR_NAMES)] * count
    else:
        unused = rng.choice(("black", "white"))  # one of them is left for the background
        colours = [rng.choice([name for name in COLOUR_NAMES if name != unused]) for _ in range(count)]
    return _picture(rng, draw_size(rng), colours)


def _picture(rng: Random, size: tuple[int, int], colours: Sequence[str]) -> Picture:
    image = Image.new("RGB", size, behind_shapes(rng, set(colours)))
    pen = ImageDraw.Draw(image)
    only = rng.choice(SORTS) if rng.random() < _ONE_SORT_SHARE else None
    marks = []
    for colour, circle in zip(colours, _places(rng, size, len(colours)), strict=True):
        box = _draw(pen, rng, only or rng.choice(SORTS), circle, named(rng, colour))
        marks.append(Mark(box, shape_thing(colour)))
    answers = {Asked.COUNT: str(len(colours))}
    if len(set(colours)) == 1:
        answers[Asked.COLOUR] = colours[0]
    return Picture(through_jpeg(rng, image), answers, tuple(marks))


def _places(rng: Random, size: tuple[int, int], count: int) -> list[Circle]:
    """Circles that lie apart; they shrink until all have found a place."""
    width, height = size
    most = min(width, height) / 2 - _GAP
    if count > 1:
        most = min(most, 0.62 * math.sqrt(width * height / count) - _GAP)
    least = min(_LEAST_RADIUS, most)
    while True:
        found: list[Circle] = []
        for _ in range(30 * count):
            radius = least + (most - least) * rng.random()
            x, y = (rng.uniform(radius + _GAP, side - radius - _GAP) for side in size)
            if all(math.hypot(x - a, y - b) >= radius + r + _GAP for a, b, r in found):
                found.append((x, y, radius))
                if len(found) == count:
                    return found
        most = max(least, 0.8 * most)


def _draw(
    pen: ImageDraw.ImageDraw, rng: Random, sort: str, circle: Circle, paint: Paint
) -> tuple[float, float, float, float]:
    """Draws one shape inside the circle; returns its box."""
    x, y, radius = circle
    flat = rng.uniform(0.55, 0.9)
    half = (radius, radius)
    if sort in ("ellipse", "rectangle"):
        half = (radius, radius * flat) if rng.random() < 0.5 else (radius * flat, radius)
    if sort in ("square", "rectangle"):
        half = (half[0] * math.sqrt(0.5), half[1] * math.sqrt(0.5))
    box = (x - half[0], y - half[1], x + half[0], y + half[1])
    if sort in ("circle", "ellipse"):
        pen.ellipse(box, fill=paint)
    elif sort in ("square", "rectangle"):
        pen.rectangle(box, fill=paint)
    else:
        pen.polygon(_corners(rng, sort, circle), fill=paint)
    return box


def _corners(rng: Random, sort: str, circle: Circle) -> list[tuple[float, float]]:
    """Corners of a shape with straight sides, upright or turned."""
    x, y, radius = circle
    count = {"triangle": 3, "diamond": 4, "hexagon": 6, "star": 10}[sort]
    start = -math.pi / 2 + (rng.uniform(0, 2 * math.pi) if rng.random() < 0.4 else 0.0)
    radii = [radius * (0.45 if sort == "star" and corner % 2 else 1.0) for corner in range(count)]
    angles = [start + 2 * math.pi * corner / count for corner in range(count)]
    return [(x + r * math.cos(a), y + r * math.sin(a)) for r, a in zip(radii, angles, strict=True)]
