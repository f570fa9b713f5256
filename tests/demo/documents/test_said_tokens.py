"""The model can say what it reads: a token that requests hold is also asked for in replies."""

from collections import Counter
from itertools import islice

import pytest

from twinspark_demo.documents.mixture import SHORT, conversations
from twinspark_demo.row_batch import TokenClass
from twinspark_demo.rows.encode import Encoder
from twinspark_demo.rows.tokenizer import COMMITTED_TOKENIZER
from twinspark_tools.tiny_checkpoint import SHAPES

NUM_CONVERSATIONS = 40_000
SPECIAL = SHAPES["demo"].first_special_id
SELDOM = 20
"""In the messages of so many documents a token may be rarer than it can be found in as many replies."""


@pytest.fixture(scope="module")
def counts() -> tuple[Counter[int], Counter[int]]:
    """How often each token stands in what users say, and in what is learned as a reply."""
    asked: Counter[int] = Counter()
    learned: Counter[int] = Counter()
    drawn = conversations(8, SHORT, 1_000)
    encoder = Encoder.load(COMMITTED_TOKENIZER)
    for _ in range(NUM_CONVERSATIONS // 1_000):
        chunk = list(islice(drawn, 1_000))
        for conversation, document in zip(chunk, encoder.encode(chunk), strict=True):
            is_reply = document.classes == TokenClass.ANSWER
            learned.update(document.ids[is_reply].tolist())
            if not conversation.tools:  # their list is written by the template
                asked.update(document.ids[~is_reply].tolist())
    return asked, learned


def test_nearly_every_token_of_requests_is_learned_in_replies(counts: tuple[Counter[int], Counter[int]]) -> None:
    asked, learned = counts
    known = [token for token, count in asked.items() if token < SPECIAL and count >= SELDOM]
    unsaid = [token for token in known if not learned[token]]
    assert len(known) > 1_600
    assert len(unsaid) <= 0.01 * len(known)


def test_most_of_the_vocabulary_is_learned_in_replies(counts: tuple[Counter[int], Counter[int]]) -> None:
    """The rest: bytes that no text of the documents has, and what merges are made of."""
    _, learned = counts
    assert sum(learned[token] > 0 for token in range(SPECIAL)) > 0.9 * SPECIAL
