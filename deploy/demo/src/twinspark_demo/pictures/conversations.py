"""Conversations about one picture or two: one right reply each, the question before or after the pictures."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.turn import Setting, Turn
from twinspark_demo.pictures.numbers import draw_number
from twinspark_demo.pictures.picture import Asked, Picture
from twinspark_demo.pictures.shapes import draw_colour, draw_count
from twinspark_demo.pictures.wordings import ASKED_OF_BOTH, ask, ask_both

IMAGE_TEXT = "<|begin_of_image|><|image|><|end_of_image|>"
"""What the chat template writes for an image; the middle token is repeated, one for each of the image's rows."""
JOINT = ", "
"""Between the answers of two pictures."""
SHARES: Mapping[str, float] = {"number": 0.36, "colour": 0.12, "count": 0.20, "two": 0.32}
_OTHER_ANSWER_SHARE = 0.2  # of pictures that answer two questions: the one that they were not drawn for is asked
_BETWEEN_SHARE = 0.1  # of requests with two pictures: the question stands between them

_DRAWN: Mapping[Asked, Callable[[Random], Picture]] = {
    Asked.NUMBER: draw_number,
    Asked.COLOUR: draw_colour,
    Asked.COUNT: draw_count,
}


@dataclass(frozen=True, slots=True)
class PictureConversation:
    """A conversation and its pictures, in the order in which its text has their places."""

    conversation: Conversation
    pictures: tuple[Picture, ...]


def conversations(seed: int, shares: Mapping[str, float] = SHARES) -> Iterator[PictureConversation]:
    """Endless conversations of these kinds; the same arguments give the same ones."""
    rng = Random(seed)
    kinds, weights = list(shares), list(shares.values())
    while True:
        yield KINDS[rng.choices(kinds, weights)[0]](rng)


def _about_one(rng: Random, asked: Asked) -> PictureConversation:
    picture = _DRAWN[asked](rng)
    others = [other for other in picture.answers if other is not asked]
    if others and rng.random() < _OTHER_ANSWER_SHARE:
        asked = others[0]
    return _conversation(rng, asked.value, ask(rng, asked), [picture], picture.answers[asked])


def _about_two(rng: Random) -> PictureConversation:
    """Both answers in the pictures' order, or the answer of the only picture that has it."""
    if rng.random() < 0.5:
        asked = rng.choice(ASKED_OF_BOTH)
        pictures = [_DRAWN[asked](rng) for _ in range(2)]
        return _conversation(
            rng, "two", ask_both(rng, asked), pictures, JOINT.join(picture.answers[asked] for picture in pictures)
        )
    pictures = [draw_number(rng), rng.choice((draw_colour, draw_count))(rng)]
    picture = rng.choice(pictures)
    asked = rng.choice(list(picture.answers))
    rng.shuffle(pictures)
    return _conversation(rng, "two", ask(rng, asked), pictures, picture.answers[asked])


def _conversation(rng: Random, kind: str, request: str, pictures: list[Picture], answer: str) -> PictureConversation:
    images = [IMAGE_TEXT] * len(pictures)
    if len(images) > 1 and rng.random() < _BETWEEN_SHARE:
        parts = [images[0], request, *images[1:]]
    elif rng.random() < 0.5:
        parts = [request, *images]
    else:
        parts = [*images, request]
    conversation = Setting.draw(rng).conversation(kind, (Turn("".join(parts), answer),))
    return PictureConversation(conversation, tuple(pictures))


KINDS: Mapping[str, Callable[[Random], PictureConversation]] = {
    Asked.NUMBER.value: lambda rng: _about_one(rng, Asked.NUMBER),
    Asked.COLOUR.value: lambda rng: _about_one(rng, Asked.COLOUR),
    Asked.COUNT.value: lambda rng: _about_one(rng, Asked.COUNT),
    "two": _about_two,
}
