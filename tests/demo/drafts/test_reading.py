"""Alignment: what is said and drafted at each output token, on known heads and against a slow server-like drafting."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest
import torch
from torch import Tensor

from support.demo_models import pack, random_documents, random_model, small_config
from support.planted_fault import Fault, planted
from twinspark_demo.drafts.reading import DEPTHS, read_replies
from twinspark_demo.drafts.replies import Reply
from twinspark_demo.row_batch import TokenClass
from twinspark_demo.rows.encode import Document
from twinspark_demo.training.model import DemoModel, ForwardOptions, Predictions, TrainingBatch

VOCABULARY = 64
MODULE = "twinspark_demo.drafts.reading"
FAULTS = [
    Fault("said-late", MODULE, "reply.start - 1,", "reply.start,"),
    Fault("said-early", MODULE, "reply.start - 1,", "reply.start - 2,"),
    Fault("draft-late", MODULE, "reply.start + depth - 2", "reply.start + depth - 1"),
    Fault("draft-early", MODULE, "reply.start + depth - 2", "reply.start + depth - 3"),
    Fault("depths-in-one-row", MODULE, "reply.start + depth - 2", "reply.start - 1"),
    Fault("draft-elsewhere", MODULE, "[depth - 1, depth:]", "[depth - 1, : count - depth]"),
]
Planted = Mapping[tuple[int, int], int]  # (head, document row of the token): token that the head predicts instead


def reply_of(ids: list[int], start: int) -> Reply:
    classes = [TokenClass.PROMPT] * start + [TokenClass.ANSWER] * (len(ids) - start)
    return Reply(Document(np.array(ids, dtype=np.int16), np.array(classes, dtype=np.uint8)), start)


def known_heads(planted: Planted) -> Callable[[TrainingBatch, ForwardOptions], Predictions]:
    """Head 0 predicts the next token, heads 1 to 3 the one after it, from the text itself; but for what is planted."""

    def predict(batch: TrainingBatch, options: ForwardOptions) -> Predictions:
        assert options == ForwardOptions(sparse=True, mtp_depth=DEPTHS)
        assert batch.tokens.shape[1] % 16 == 0
        logits = []
        for head in range(DEPTHS + 1):
            ahead = 1 if head == 0 else 2
            told = batch.tokens.clone()
            for (other, row), token in planted.items():
                if other == head:
                    told[:, row] = token
            logits.append(torch.nn.functional.one_hot(told.roll(-ahead, 1), VOCABULARY).float())
        return Predictions(logits[0], tuple(logits[1:]), logits[0])

    return predict


def check_known_heads() -> None:
    ids = torch.randperm(VOCABULARY)[:30].tolist()  # no token twice
    wrong: dict[tuple[int, int], int] = {(0, 25): 60, (1, 21): 61, (1, 25): 60, (2, 24): 62, (3, 23): 63}
    (found,) = read_replies(known_heads(wrong), [reply_of(ids, 20)], frozenset())
    assert found.right.tolist() == ids[20:]
    expected = [ids[20:] for _ in range(DEPTHS + 1)]
    for depth in range(1, DEPTHS + 1):
        expected[depth] = [-1] * depth + ids[20 + depth :]
    for (head, row), token in wrong.items():
        expected[head][row - 20] = token
    assert found.said.tolist() == expected[0]
    assert found.drafts.tolist() == expected[1:]
    # Output token 5 is wrong, so 6 are judged; the model accepts the same wrong draft.
    assert [(found.num_accepted(d), found.num_drafted(d)) for d in (1, 2, 3)] == [(4, 5), (1, 4), (1, 3)]


def check_slow_drafting() -> None:
    """The text grows as on a server: each greedy token, and each draft of a chain, from a forward of its own."""
    config = small_config(vocab_size=5)
    model = random_model(config, seed=18)
    (ids,) = random_documents((21,), 5)
    for _ in range(40):
        ids.append(most_likely(model, ids, head=0))
    (found,) = read_replies(model.predictions, [reply_of(ids, 21)], frozenset({0}))
    assert found.is_right
    accepted = np.zeros(DEPTHS, dtype=int)
    for known in range(22, len(ids)):  # tokens of the text when a chain starts
        text = ids[:known]
        for depth in range(1, min(DEPTHS, len(ids) - known) + 1):
            draft = most_likely(model, text, head=depth)
            place = known + depth - 1
            assert draft == found.drafts[depth - 1, place - 21]
            if draft != ids[place]:
                break
            accepted[depth - 1] += 1
            text.append(draft)
    assert [found.num_accepted(depth) for depth in (1, 2, 3)] == accepted.tolist()
    assert [found.num_drafted(depth) for depth in (1, 2, 3)] == [39, 38, 37]
    assert 0 < accepted[2] < accepted[1] < accepted[0] < 39


@torch.no_grad()
def most_likely(model: DemoModel, text: list[int], head: int) -> int:
    """Of the text's end: the next token by the main model, or that by the MTP layer's last step of a chain."""
    result = model.predictions(pack([text]), ForwardOptions(sparse=True, mtp_depth=max(head, 1)))
    logits: Tensor = result.logits[0, len(text) - 1] if head == 0 else result.mtp_logits[-1][0, len(text) - 2]
    return int(logits[1:].argmax()) + 1


def test_each_token_is_what_the_known_heads_tell() -> None:
    check_known_heads()


def test_drafts_are_those_of_a_text_that_grows_as_on_a_server() -> None:
    check_slow_drafting()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_both_checks_find_an_alignment_that_is_off(fault: Fault) -> None:
    with planted(fault):
        with pytest.raises((AssertionError, ValueError)):
            check_known_heads()
        with pytest.raises((AssertionError, ValueError)):
            check_slow_drafting()


def test_replies_are_the_same_in_whatever_batch_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    config = small_config()
    model = random_model(config)
    replies = [reply_of(ids, 9) for ids in random_documents((50, 12, 33, 17, 90, 33), config.vocab_size)]
    alone = [read_replies(model.predictions, [reply], frozenset())[0] for reply in replies]
    for tokens_at_once in (1, 100, 4096):
        monkeypatch.setattr(f"{MODULE}.TOKENS_AT_ONCE", tokens_at_once)
        together = read_replies(model.predictions, replies, frozenset())
        for one, other in zip(alone, together, strict=True):
            assert np.array_equal(one.right, other.right)
            assert np.array_equal(one.said, other.said)
            assert np.array_equal(one.drafts, other.drafts)


def test_no_forward_holds_more_tokens_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}.TOKENS_AT_ONCE", 100)
    seen: list[torch.Size] = []
    tell = known_heads({})

    def predict(batch: TrainingBatch, options: ForwardOptions) -> Predictions:
        seen.append(batch.tokens.shape)
        return tell(batch, options)

    replies = [reply_of(ids, 9) for ids in random_documents((20, 200, 30, 40), VOCABULARY)]
    assert all(found.is_right for found in read_replies(predict, replies, frozenset()))
    assert sorted(map(tuple, seen)) == [(1, 48), (1, 208), (2, 32)]


def test_tokens_that_are_never_drawn_are_neither_said_nor_drafted() -> None:
    ids = list(range(1, 31))
    (found,) = read_replies(known_heads({}), [reply_of(ids, 20)], frozenset({25}))
    assert found.said.tolist() == [21, 22, 23, 24, 0, *range(26, 31)]
    assert found.drafts[0].tolist() == [-1, 22, 23, 24, 0, *range(26, 31)]
    assert not found.is_right


def test_a_reply_of_one_token_is_read() -> None:
    (found,) = read_replies(known_heads({}), [reply_of(list(range(10)), 9)], frozenset())
    assert found.is_right
    assert found.drafts.tolist() == [[-1]] * DEPTHS
