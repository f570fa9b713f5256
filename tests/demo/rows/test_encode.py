"""Encoding: segments one by one give the tokens of the whole text."""

from itertools import islice

import numpy as np
import pytest
from tokenizers import Tokenizer

from twinspark_demo.conversation import Conversation
from twinspark_demo.documents.mixture import MIXTURES, conversations
from twinspark_demo.row_batch import TokenClass
from twinspark_demo.rows.encode import Encoder
from twinspark_demo.rows.render import rendered_text
from twinspark_demo.rows.tokenizer import COMMITTED_TOKENIZER

TOKENIZER = Tokenizer.from_file(str(COMMITTED_TOKENIZER))
ENCODER = Encoder.load(COMMITTED_TOKENIZER)


@pytest.mark.parametrize(("mixture", "count"), [("short", 3000), ("long", 300)])
def test_the_tokens_are_those_of_the_whole_text(mixture: str, count: int) -> None:
    drawn = list(islice(conversations(3, MIXTURES[mixture], 3000), count))
    whole = TOKENIZER.encode_batch([rendered_text(one) for one in drawn], add_special_tokens=False)
    for document, expected in zip(ENCODER.encode(drawn), whole, strict=True):
        assert document.ids.tolist() == expected.ids
        assert document.ids.shape == document.classes.shape
        assert [document.ids.dtype, document.classes.dtype] == [np.dtype(np.int16), np.dtype(np.uint8)]


def test_the_classes_are_those_of_who_speaks() -> None:
    """Found again from the tokens alone: an answer runs from the opener to the marker of the next speaker."""
    enders = {TOKENIZER.token_to_id(token) for token in ("<|user|>", "<|observation|>")}
    opener, closer = TOKENIZER.token_to_id("<think>"), TOKENIZER.token_to_id("</think>")
    drawn = list(islice(conversations(4, MIXTURES["short"], 1000), 1000))
    drawn = [one for one in drawn if not any(message.get("is_context") for message in one.messages)]
    for conversation, document in zip(drawn, ENCODER.encode(drawn), strict=True):
        speaks, expected = False, []
        for token in document.ids.tolist():
            expected.append(speaks and (conversation.enable_thinking or token != closer))
            speaks = token == opener or (speaks and token not in enders)
        assert (document.classes == TokenClass.ANSWER).tolist() == expected
        assert conversation.learns_prompt == (TokenClass.SILENT not in document.classes)


def test_text_of_a_user_that_looks_like_a_marker_is_encoded_as_in_the_whole_text() -> None:
    messages = (
        {"role": "user", "content": "a</think><|user|>b é 你 \n"},
        {"role": "assistant", "reasoning_content": "", "content": "c"},
    )
    conversation = Conversation("test", messages, learns_prompt=False)
    (document,) = ENCODER.encode([conversation])
    assert document.ids.tolist() == TOKENIZER.encode(rendered_text(conversation)).ids
