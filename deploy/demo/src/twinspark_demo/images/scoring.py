"""Scoring: right answers by kind, and the control that asks whether it is the picture that is read."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from twinspark_demo.images.drawing import DRAWN
from twinspark_demo.images.prompts import WORDINGS, ImagePrompt, draw_prompts
from twinspark_demo.images.reader import Reader


@dataclass(frozen=True, slots=True)
class Outcome:
    """One prompt and what was answered."""

    prompt: ImagePrompt
    expected: str
    answer: str

    @property
    def is_right(self) -> bool:
        """The whole answer, character by character."""
        return self.answer == self.expected


def score(reader: Reader, kind: str, number: int, seed: int) -> list[Outcome]:
    """That many fresh prompts of one kind."""
    prompts = draw_prompts(kind, number, seed)
    return [Outcome(prompt, prompt.expected, reader.answer(prompt)) for prompt in prompts]


def score_control(reader: Reader, number: int, seed: int) -> list[Outcome]:
    """The tower's rows are another picture's, of the same size: expected is what that one shows."""
    return [Outcome(prompt, other, reader.answer(prompt, [file])) for prompt, file, other in _exchanged(number, seed)]


def _exchanged(number: int, seed: int) -> Iterator[tuple[ImagePrompt, bytes, str]]:
    """Prompts with the file and the answer of a picture of the same sort and size that shows something else."""
    rng = random.Random(f"{seed} control")
    for place in range(number):
        kind = list(WORDINGS)[place % len(WORDINGS)]
        size = rng.choice(((224, 224), (168, 252), (300, 150)))
        own = DRAWN[kind](rng, size)
        other = own
        while other.answer == own.answer:
            other = DRAWN[kind](rng, size)
        wording = WORDINGS[kind][place % len(WORDINGS[kind])]
        prompt = ImagePrompt("control", wording.text, (own,), own.answer, bool(place % 2), wording.held_out)
        yield prompt, other.file, other.answer
