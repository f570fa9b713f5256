"""A small tower in front of a small language model, and batches of small pictures."""

from collections.abc import Callable
from itertools import islice

import pytest

from support.vision_models import SMALL_BATCH, SMALL_TOWER
from twinspark_demo.pictures.conversations import SHARES
from twinspark_demo.rows.encode import Encoder
from twinspark_demo.rows.tokenizer import COMMITTED_TOKENIZER
from twinspark_demo.training.model import DemoModel
from twinspark_demo.training.vision.dataset import documents
from twinspark_demo.training.vision.model import VisionModel
from twinspark_demo.training.vision.packing import VisionDocument, VisionTensors, pack

DrawDocuments = Callable[[int, int], list[VisionDocument]]


@pytest.fixture
def vision_model(small_model: DemoModel) -> VisionModel:
    """Fresh weights."""
    return VisionModel(SMALL_TOWER, small_model, seed=2)


@pytest.fixture(scope="session")
def encoder() -> Encoder:
    """The committed tokenizer's."""
    return Encoder.load(COMMITTED_TOKENIZER)


@pytest.fixture(scope="session")
def draw_documents(encoder: Encoder) -> DrawDocuments:
    """(seed, number) -> that many documents of all kinds."""
    return lambda seed, number: list(islice(documents(encoder, seed, SHARES), number))


@pytest.fixture
def small_rows(draw_documents: DrawDocuments) -> VisionTensors:
    """One batch of SMALL_BATCH."""
    return next(pack(draw_documents(3, 400), SMALL_BATCH))
