"""No held-out wording occurs in what the model is trained on."""

import re
from collections.abc import Iterator
from itertools import islice
from random import Random

import pytest

from twinspark_demo.documents.mixture import MIXTURES, conversations
from twinspark_demo.evaluation.drawing import kinds
from twinspark_demo.evaluation.english_text import PLAIN_FRAMES
from twinspark_demo.evaluation.kinds.needle import STATEMENTS
from twinspark_demo.evaluation.prompt import Wording
from twinspark_demo.images.prompts import BOTH
from twinspark_demo.images.prompts import WORDINGS as OF_ONE_PICTURE
from twinspark_demo.pictures.picture import Asked
from twinspark_demo.pictures.wordings import ASKED_OF_BOTH, ask, ask_both

NUM_CONVERSATIONS, NUM_PICTURE_REQUESTS = 20_000, 4_000
WORDINGS = {wording for kind in kinds().values() for wording in kind.wordings} | set(STATEMENTS)
OF_PICTURES = {wording for kind in (*OF_ONE_PICTURE.values(), *BOTH.values()) for wording in kind}
HELD_OUT = sorted(wording.text for wording in WORDINGS | OF_PICTURES if wording.held_out)


def fixed_words(text: str) -> str:
    """The longest piece of a wording between its places: small letters, one space between words."""
    pieces = re.split(r"\{.*?\}", text)
    return max((normal(piece) for piece in pieces), key=len)


def normal(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def occurs(text: str, trained: str) -> bool:
    return f" {fixed_words(text)} " in trained


@pytest.fixture(scope="module")
def trained() -> str:
    """What users say in drawn documents, a line each."""
    drawn = islice(conversations(3, MIXTURES["short"], 1_000), NUM_CONVERSATIONS)
    said = (message["content"] for document in drawn for message in document.messages if message["role"] == "user")
    return "\n".join(f" {normal(text)} " for text in (*said, *said_of_pictures()))


def said_of_pictures() -> Iterator[str]:
    """Requests of each sort, as in conversations about pictures."""
    rng = Random(3)
    for _ in range(NUM_PICTURE_REQUESTS):
        yield from (ask(rng, asked) for asked in Asked)
        yield from (ask_both(rng, asked) for asked in ASKED_OF_BOTH)


@pytest.mark.parametrize("text", HELD_OUT)
def test_a_held_out_wording_is_in_no_training_document(text: str, trained: str) -> None:
    assert len(fixed_words(text).split()) >= 3
    assert not occurs(text, trained)


@pytest.mark.parametrize("text", PLAIN_FRAMES)
def test_no_sentence_to_copy_is_in_a_training_document(text: str, trained: str) -> None:
    assert len(fixed_words(text).split()) >= 2
    anything = r" (?:\w+ ){1,4}"
    pieces = [re.escape(normal(piece)) for piece in re.split(r"\{.*?\}", text) if normal(piece)]
    assert re.search(f" {anything.join(pieces)} ", trained) is None


def test_a_wording_that_training_has_is_found(trained: str) -> None:
    assert occurs("What is the capital of {a}?", trained)
    for wordings in (WORDINGS, OF_PICTURES):
        usual = [Wording(wording.text) for wording in wordings if not wording.held_out]
        assert sum(occurs(wording.text, trained) for wording in usual) > len(usual) / 3
