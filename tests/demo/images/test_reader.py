"""The reader gives the model what training gave it, and refuses what it cannot read."""

import random
from dataclasses import replace
from io import BytesIO
from itertools import islice
from pathlib import Path

import pytest
import torch
from torch import Tensor

from support.planted_fault import Fault, planted
from twinspark_demo.images.drawing import DRAWN, Drawing
from twinspark_demo.images.prompts import ImagePrompt, draw_prompts
from twinspark_demo.images.reader import Reader
from twinspark_demo.pictures.conversations import IMAGE_TEXT, PictureConversation, conversations
from twinspark_demo.rows.encode import Encoder
from twinspark_demo.rows.tokenizer import COMMITTED_TOKENIZER
from twinspark_demo.training.vision.packing import IMAGE_ID, encode
from twinspark_engine.model.model import Model
from twinspark_engine.model.rows import Rows
from twinspark_engine.model.state import ModelState
from twinspark_tools.tiny_checkpoint import SHAPES
from twinspark_tools.tiny_checkpoint.folder import write_checkpoint

READER = "twinspark_demo.images.reader"


def asked_again(drawn: PictureConversation) -> ImagePrompt | None:
    """A conversation of the training data as a prompt; None where it is set in another way."""
    conversation = drawn.conversation
    request: str = conversation.messages[0]["content"]
    images = IMAGE_TEXT * len(drawn.pictures)
    is_plain = len(conversation.messages) == 2 and conversation.enable_thinking and not conversation.reasoning_effort
    if not is_plain or images not in request:
        return None
    files = []
    for picture in drawn.pictures:
        file = BytesIO()
        picture.image.save(file, "PNG")
        files.append(Drawing(file.getvalue(), ""))
    return ImagePrompt("", request.replace(images, ""), tuple(files), "", request.endswith(images), False)


def test_prompts_have_the_tokens_that_training_had(reader: Reader) -> None:
    encoder = Encoder.load(COMMITTED_TOKENIZER)
    compared = set()
    for drawn in islice(conversations(21), 60):
        prompt = asked_again(drawn)
        if prompt is None:
            continue
        trained = encode(encoder, [drawn])[0].document.ids.tolist()
        ids = reader.prompt_rows(prompt).ids.tolist()
        assert ids == trained[: len(ids)]
        assert IMAGE_ID not in trained[len(ids) :]
        compared.add((len(prompt.drawings), prompt.is_before))
    assert compared == {(1, True), (1, False), (2, True), (2, False)}


def assert_every_row_at_its_own_place(reader: Reader) -> None:
    """Of two pictures, each through the tower alone."""
    prompt = next(draw_prompts("two_both", 1, 4))
    alone = [reader.prompt_rows(replace(prompt, drawings=(drawing,))).images for drawing in prompt.drawings]
    rows = reader.prompt_rows(prompt)
    assert rows.images is not None
    assert torch.equal(rows.images.places, (rows.ids == IMAGE_ID).nonzero().flatten())
    expected = torch.cat([images.values for images in alone if images is not None])
    torch.testing.assert_close(rows.images.values, expected, rtol=1e-4, atol=1e-5)


def test_rows_of_two_pictures_stand_in_order_at_their_own_tokens(reader: Reader) -> None:
    assert_every_row_at_its_own_place(reader)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("one-token-early", READER, "ImageRows(places, values)", "ImageRows(places - 1, values)"),
        Fault("rows-shifted", READER, "ImageRows(places, values)", "ImageRows(places, values.roll(len(own) - 1, 0))"),
        Fault("other-order", READER, "TowerInput.of(others)", "TowerInput.of(others[::-1])"),
    ],
    ids=lambda fault: fault.name,
)
def test_a_row_elsewhere_is_found(reader: Reader, fault: Fault) -> None:
    with planted(fault), pytest.raises(AssertionError):
        assert_every_row_at_its_own_place(reader)


def test_every_token_of_a_reply_is_computed_at_the_next_position(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[Tensor] = []
    forward = Model.forward

    def watched(model: Model, rows: Rows, state: ModelState) -> Tensor:
        computed.append(rows.positions)
        return forward(model, rows, state)

    monkeypatch.setattr(Model, "forward", watched)
    reader.answer(next(draw_prompts("two_both", 1, 4)))
    assert len(computed) > 3
    assert torch.cat(computed).tolist() == list(range(sum(map(len, computed))))


def test_pictures_of_another_size_cannot_be_shown_instead(reader: Reader) -> None:
    rng = random.Random(0)
    own, other = (DRAWN["number"](rng, size) for size in ((224, 224), (224, 253)))
    prompt = ImagePrompt("number", "Which number?", (own,), own.answer, False, False)
    with pytest.raises(ValueError, match="other sizes"):
        reader.answer(prompt, [other.file])


def test_a_folder_without_a_tower_is_refused(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, SHAPES["tiny"])
    with pytest.raises(ValueError, match="no vision_config"):
        Reader(tmp_path)
