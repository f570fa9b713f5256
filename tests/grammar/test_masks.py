"""Windows of masks: the draft path, state that keeps no trace of drafts, and where output may end."""

import math
import random
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.grammar_texts import ROOM, Grammars, allowed_ids
from twinspark_grammar.errors import MasksTooSlowError, NoTokenAllowedError, TokenNotAllowedError
from twinspark_grammar.masks import SUSTAINED_SECONDS, MaskParams, RequestMasks, Words
from twinspark_grammar.source import GrammarKind

KINDS = [
    (GrammarKind.JSON_OBJECT, ""),
    (GrammarKind.JSON_SCHEMA, {"type": "array", "items": {"type": "string"}, "minItems": 1}),
    (GrammarKind.REGEX, "(ab|cd)+[0-9]{2,5}(x|yz)?"),
    (GrammarKind.EBNF, 'root ::= "(" root ")" | "a"+'),
    (GrammarKind.CHOICE, ["yes", "no", "yes, but", "ünsure"]),
    (GrammarKind.TOOL_CALLS, {"tools": [{"type": "function", "function": {"name": "now"}}]}),
]
some = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@some
@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 2**32))
def test_masks_along_drafts_are_those_of_a_fresh_stream_and_drafts_leave_no_trace(
    grammars: Grammars, kind: tuple[GrammarKind, object], seed: int
) -> None:
    draw = random.Random(seed)
    grammar = grammars.compile(*kind)
    output = [*(grammars.sample(grammar, seed) or []), grammars.end]
    masks, done = grammars.open(grammar), 0
    committed: list[int] = []
    while done <= len(output):
        drafts = output[done : done + draw.randrange(5)]
        drafts += [draw.randrange(grammars.size) for _ in range(draw.randrange(3))]
        window = masks.advance(committed, drafts)
        for row in range(window.num_allowed_drafts + 1):
            fresh = grammars.open(grammar).advance(output[:done] + drafts[:row], [])
            assert np.array_equal(window.masks[row], fresh.masks[0])
            assert window.complete[row] == fresh.complete[0]
        if window.num_allowed_drafts < len(drafts):
            refused = drafts[window.num_allowed_drafts]
            is_after_end = grammars.end in drafts[: window.num_allowed_drafts]
            assert is_after_end or refused not in allowed_ids(window, window.num_allowed_drafts)
        step = draw.randrange(1, 4)
        committed = output[done : done + step]
        done += step


@some
@given(kind=st.sampled_from(KINDS), seed=st.integers(0, 2**32))
def test_the_end_is_allowed_where_output_is_complete_and_only_there(
    grammars: Grammars, kind: tuple[GrammarKind, object], seed: int
) -> None:
    stops = [grammars.end, grammars.vocabulary.added["<|user|>"], grammars.vocabulary.added["<|observation|>"]]
    grammar = grammars.compile(*kind)
    output = grammars.sample(grammar, seed) or []
    window = grammars.open(grammar, stops=stops).advance([], output)
    assert window.num_allowed_drafts == len(output)
    for row, is_complete in enumerate(window.complete):
        allowed = set(allowed_ids(window, row))
        assert allowed & set(stops) == (set(stops) if is_complete else set())
    assert bool(window.masks.any(axis=1).all())


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind[0].name)
def test_rows_of_the_model_without_a_token_are_masked(grammars: Grammars, kind: tuple[GrammarKind, object]) -> None:
    grammar = grammars.compile(*kind)
    output = grammars.sample(grammar, 1) or []
    window = grammars.open(grammar).advance([], [*output, grammars.end])
    largest = max(max(allowed_ids(window, row)) for row in range(len(window.complete)))
    assert largest < grammars.size - ROOM
    assert window.masks.shape == (len(output) + 2, (grammars.size + 31) // 32)


def test_added_tokens_are_never_allowed_in_text(grammars: Grammars) -> None:
    added = set(grammars.vocabulary.added.values()) - {grammars.end}
    texts = {
        (GrammarKind.REGEX, r"[\s\S]*"): "anything",
        (GrammarKind.EBNF, "root ::= [^a]*"): "xyz",
        (GrammarKind.JSON_OBJECT, ""): '{"key": "in a string',
    }
    for (kind, source), text in texts.items():
        window = grammars.open(grammars.compile(kind, source)).advance([], grammars.encode(text))
        rows = range(window.num_allowed_drafts + 1)
        assert window.num_allowed_drafts == len(grammars.encode(text))
        assert not added & {i for row in rows for i in allowed_ids(window, row)}


def test_a_stop_id_that_is_text_ends_only_complete_output(demo: Grammars) -> None:
    stop = demo.encode("!")[0]
    masks = demo.open(demo.compile(GrammarKind.REGEX, "a!?b!?"), stops=[stop])
    window = masks.advance([], demo.encode("a") + demo.encode("b"))
    assert [stop in allowed_ids(window, row) for row in range(3)] == [False, False, True]


def test_until_the_end_of_thinking_all_tokens_are_allowed_but_the_stop_ids(grammars: Grammars) -> None:
    added = grammars.vocabulary.added
    closing, stops = added["</think>"], [grammars.end, added["<|user|>"]]
    masks = grammars.open(grammars.compile(GrammarKind.CHOICE, ["yes"]), starts_after=closing, stops=stops)
    thought = grammars.encode("Well: {}")
    free = sorted(grammars.vocabulary.token_ids - set(stops))
    window = masks.advance([], [*thought, closing, *grammars.encode("yes"), grammars.end])
    before = len(thought) + 1
    assert all(allowed_ids(window, row) == free for row in range(before))
    assert not any(window.complete[:before])
    assert set(allowed_ids(window, before)).isdisjoint({*stops, closing})
    assert window.complete[-1]
    assert window.num_allowed_drafts == len(window.masks) - 1
    assert allowed_ids(masks.advance([*thought, closing], []), 0) == allowed_ids(window, before)
    assert allowed_ids(masks.advance(grammars.encode("yes"), []), 0) == sorted(stops)


def test_an_end_of_thinking_among_rejected_drafts_starts_nothing(grammars: Grammars) -> None:
    closing = grammars.vocabulary.added["</think>"]
    masks = grammars.open(grammars.compile(GrammarKind.CHOICE, ["yes"]), starts_after=closing)
    assert masks.advance([], [closing, *grammars.encode("yes")]).num_allowed_drafts > 1
    window = masks.advance(grammars.encode("no: "), [closing, *grammars.encode("no")])
    assert closing in allowed_ids(window, 0)
    assert window.num_allowed_drafts == 1


def test_a_second_end_of_thinking_is_under_the_grammar(grammars: Grammars) -> None:
    closing = grammars.vocabulary.added["</think>"]
    masks = grammars.open(grammars.compile(GrammarKind.REGEX, r"[\s\S]+"), starts_after=closing)
    window = masks.advance([closing], [closing])
    assert window.num_allowed_drafts == 0
    assert closing not in allowed_ids(window, 0)


def test_a_stop_id_while_waiting_is_not_allowed(grammars: Grammars) -> None:
    closing = grammars.vocabulary.added["</think>"]
    masks = grammars.open(grammars.compile(GrammarKind.CHOICE, ["yes"]), starts_after=closing)
    with pytest.raises(TokenNotAllowedError, match="committed token 1 of this round"):
        masks.advance([*grammars.encode("x")[:1], grammars.end], [])


def test_nothing_is_allowed_after_the_end(grammars: Grammars) -> None:
    masks = grammars.open(grammars.compile(GrammarKind.CHOICE, ["yes"]))
    ids = grammars.encode("yes")
    window = masks.advance(ids, [grammars.end, grammars.end])
    assert window.num_allowed_drafts == 1
    assert allowed_ids(window, 1) == [grammars.end]
    assert masks.advance([grammars.end], []).complete == (True,)
    with pytest.raises(TokenNotAllowedError):
        masks.advance([grammars.end], [])


@pytest.mark.parametrize("offset", [0, ROOM - 1, ROOM, 2**31 - 1])
def test_an_id_that_is_no_token_is_not_allowed(grammars: Grammars, offset: int) -> None:
    token_id = min(len(grammars.vocabulary.token_bytes) + offset, 2**31 - 1)
    closing = grammars.vocabulary.added["</think>"]
    grammar = grammars.compile(GrammarKind.REGEX, ".*")
    assert grammars.open(grammar).advance([], [token_id]).num_allowed_drafts == 0
    with pytest.raises(TokenNotAllowedError):
        grammars.open(grammar).advance([token_id], [])
    with pytest.raises(TokenNotAllowedError):
        grammars.open(grammar, starts_after=closing).advance([token_id], [])


def test_a_draft_into_a_dead_end_is_cut_and_a_committed_one_ends_the_stream(grammars: Grammars) -> None:
    grammar = grammars.compile(GrammarKind.EBNF, 'root ::= "b" | "a" dead\ndead ::= "x" dead')
    ids = grammars.encode("a") + grammars.encode("x") * 2
    assert grammars.open(grammar).advance([], ids).num_allowed_drafts <= len(ids)
    endless = grammars.compile(GrammarKind.EBNF, 'root ::= "b" | "a" dead\ndead ::= dead')
    assert grammars.open(endless).advance([], ids).num_allowed_drafts == 0
    with pytest.raises((NoTokenAllowedError, TokenNotAllowedError)):
        grammars.open(endless).advance(ids[:1], [])


class RowCosts:
    """A clock of processor time that moves by the next cost when a row is made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, costs: Sequence[float]) -> None:
        self.now, left, fill = 0.0, list(costs), RequestMasks._fill

        def costly(masks: RequestMasks, row: Words) -> bool:
            self.now += left.pop(0)
            return fill(masks, row)

        monkeypatch.setattr(RequestMasks, "_fill", costly)

    def __call__(self) -> float:
        return self.now


def open_costly(demo: Grammars, clock: RowCosts, seconds: float, starts_after: int | None = None) -> RequestMasks:
    params = MaskParams(demo.size, (demo.end,), starts_after)
    return RequestMasks(demo.compile(GrammarKind.REGEX, "a*"), demo.vocabulary, params, seconds, clock)


def test_a_window_that_takes_too_long_is_given_up(demo: Grammars, monkeypatch: pytest.MonkeyPatch) -> None:
    letter = demo.encode("a")
    masks = open_costly(demo, RowCosts(monkeypatch, [2.0, 1.0, 1.6]), 2.5)
    masks.advance([], [])
    with pytest.raises(MasksTooSlowError, match=r"more than 2\.5 s"):
        masks.advance(letter, [*letter, *letter])


@pytest.mark.parametrize(("share", "is_given_up"), [(2.0, True), (1.0, False)])
def test_a_stream_whose_rows_are_all_slow_is_given_up(
    demo: Grammars, monkeypatch: pytest.MonkeyPatch, share: float, is_given_up: bool
) -> None:
    masks = open_costly(demo, RowCosts(monkeypatch, [share * SUSTAINED_SECONDS] * 99), 20 * SUSTAINED_SECONDS)
    with pytest.raises(MasksTooSlowError) if is_given_up else nullcontext():
        for _ in range(99):
            masks.advance(demo.encode("a"), [])


def test_a_stream_that_is_taken_over_may_take_its_time(demo: Grammars, monkeypatch: pytest.MonkeyPatch) -> None:
    masks = open_costly(demo, RowCosts(monkeypatch, [9 * SUSTAINED_SECONDS]), SUSTAINED_SECONDS)
    assert masks.advance(demo.encode("a") * 9, []).num_allowed_drafts == 0


def test_a_window_is_expected_to_take_what_the_slowest_row_under_the_grammar_took(
    demo: Grammars, monkeypatch: pytest.MonkeyPatch
) -> None:
    letter, closing = demo.encode("a"), demo.vocabulary.added["</think>"]
    clock = RowCosts(monkeypatch, [10.0, 0.5, 0.3, 0.3, 0.3, 4.0, 0.25])
    masks = open_costly(demo, clock, 60.0, starts_after=closing)
    assert masks.expect_seconds(1) == math.inf
    masks.advance(letter, [])  # not under the grammar
    assert masks.expect_seconds(1) == math.inf
    masks.advance([closing], [])  # a token and a row
    assert masks.expect_seconds(3) == pytest.approx(0.75)
    masks.advance(letter, [*letter, *letter])  # a token and three rows: each was quicker
    assert masks.expect_seconds(3) == pytest.approx(0.75)
    masks.advance(letter, [])
    masks.advance(letter, [])
    assert masks.expect_seconds(3) == pytest.approx(6.0)


def test_masks_of_growing_output_differ(demo: Grammars) -> None:
    """The comparison with fresh streams above could not fail on masks that are all alike."""
    grammar = demo.compile(GrammarKind.JSON_SCHEMA, {"enum": ["one", "two"]})
    window = demo.open(grammar).advance([], demo.encode('"one"'))
    assert all(not np.array_equal(one, other) for one, other in pairwise(window.masks))
