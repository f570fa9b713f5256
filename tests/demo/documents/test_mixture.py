"""The mixture: every kind is there, with the share that its stage asks for."""

import hashlib
from collections import Counter
from itertools import islice

import pytest

from twinspark_demo.documents.mixture import KINDS, LONG, MIXTURES, SHORT, conversations
from twinspark_demo.rows.encode import Encoder
from twinspark_demo.rows.render import rendered_text
from twinspark_demo.rows.tokenizer import COMMITTED_TOKENIZER


def documents_hash(count: int = 1000, seed: int = 0) -> str:
    """SHA-256 (hex) of the rendered text of the first documents of the short mixture, each ended by a line feed."""
    digest = hashlib.sha256()
    for conversation in islice(conversations(seed, SHORT, 1000), count):
        digest.update((rendered_text(conversation) + "\n").encode())
    return digest.hexdigest()


def test_shares_sum_to_one() -> None:
    for mixture in MIXTURES.values():
        assert sum(mixture.values()) == pytest.approx(1.0)
    assert MIXTURES == {"short": SHORT, "long": LONG}


def test_every_kind_has_a_share_and_every_share_a_kind() -> None:
    for mixture in MIXTURES.values():
        assert set(mixture) == set(KINDS)


@pytest.mark.parametrize(("mixture", "budget", "count"), [(SHORT, 1000, 4000), (LONG, 9000, 1500)])
def test_the_tokens_of_each_kind_have_about_its_share(mixture: dict[str, float], budget: int, count: int) -> None:
    drawn = list(islice(conversations(1, mixture, budget), count))
    tokens: Counter[str] = Counter()
    for conversation, document in zip(drawn, Encoder.load(COMMITTED_TOKENIZER).encode(drawn), strict=True):
        tokens[conversation.kind] += len(document.ids)
    # A few very long needles outweigh hundreds of short documents, so a sample's shares lie far from the mixture's.
    for kind, share in mixture.items():
        assert 0.6 * share < tokens[kind] / tokens.total() < 1.7 * share, kind


def test_nearly_all_documents_fit_into_the_row_that_their_budget_is_for() -> None:
    encoder = Encoder.load(COMMITTED_TOKENIZER)
    for budget, row_tokens, count in ((1008, 1024, 2000), (9000, 9216, 400)):
        drawn = islice(conversations(2, LONG, budget), count)
        lengths = [len(document.ids) for document in encoder.encode(list(drawn))]
        assert sum(length > row_tokens for length in lengths) <= 0.005 * count
        assert max(length for length in lengths if length <= row_tokens) > 0.7 * row_tokens


def test_the_same_seed_gives_the_same_documents_and_another_gives_others() -> None:
    first, again, other = (list(islice(conversations(seed, SHORT, 1000), 200)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_documents_are_those_that_the_published_model_learned_from() -> None:
    """A change here means another model: train it again, with the tokenizer that `rows.tokenizer` then writes."""
    assert documents_hash() == "ed87e5eb7bc31093e65b382a0cd909c6c3faa33f73ce4af0fcfa099cec2b88de"


def test_the_hash_depends_on_the_count_and_the_seed() -> None:
    hashes = {documents_hash(50), documents_hash(51), documents_hash(50, seed=1)}
    assert len(hashes) == 3
    assert documents_hash(50) in hashes
