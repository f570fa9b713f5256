"""Penalties, logit_bias and masks against one page of plain Python: any history, windows, slots, slices, batches."""

import math
import random
from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from support.one_page_sampler import Before, adjust
from twinspark_engine.request import Limits, Request, SamplingParams
from twinspark_engine.runner.sampling.adjustments import LARGEST_LOGIT, SLOT_COLUMN_BYTES, LogitAdjustments
from twinspark_engine.runner.sampling.rows import DrawBuffers, DrawRow
from twinspark_engine.runner.sampling.vocabulary import VocabularySlice
from twinspark_engine.runner.slot_request import SlotRequest

WIDTH = 26
ENDS = frozenset({3, 20})
NUM_SLOTS = 3
IDS = st.integers(0, WIDTH - 1)


@dataclass(frozen=True)
class Generated:
    """A request, what it has said so far, and the drafts of its next window."""

    request: Request
    output: tuple[int, ...]
    drafts: tuple[int, ...]

    def before(self, num_drafts: int) -> Before:
        request = self.request
        return Before(
            request.prompt_token_ids,
            (*request.prior_output_token_ids, *self.output, *self.drafts[:num_drafts]),
            ENDS | request.limits.stop_token_ids,
            request.limits.min_tokens,
        )

    def running(self) -> SlotRequest:
        running = SlotRequest.admit(self.request)
        for token_id in self.output:
            running.commit(token_id)
        return running


@st.composite
def generated(draw: st.DrawFn) -> Generated:
    prompt = draw(st.lists(IDS, min_size=2, max_size=12))
    sampling = SamplingParams(
        seed=1,
        repetition_penalty=draw(
            st.sampled_from([1.0, 1.1, 0.5, 2.0]) | st.floats(0, exclude_min=True, allow_infinity=False)
        ),
        frequency_penalty=draw(st.sampled_from([0.0, 0.1]) | st.floats(-2, 2)),
        presence_penalty=draw(st.sampled_from([0.0, 0.3]) | st.floats(-2, 2)),
        logit_bias=tuple(draw(st.dictionaries(IDS, st.floats(-100, 100), max_size=4)).items()),
    )
    limits = Limits(99, draw(st.frozensets(IDS, max_size=2)), draw(st.booleans()), draw(st.integers(0, 12)))
    prior = draw(st.integers(0, len(prompt) - 1))
    request = Request("one", tuple(prompt), sampling, limits, num_prior_output_tokens=prior)
    return Generated(request, tuple(draw(st.lists(IDS, max_size=8))), tuple(draw(st.lists(IDS, max_size=15))))


def build(world_size: int = 1, rank: int = 0, masked: frozenset[int] = frozenset()) -> LogitAdjustments:
    columns = WIDTH // world_size
    return LogitAdjustments(VocabularySlice(rank * columns, columns), NUM_SLOTS, ENDS, masked)


def put(adjustments: LogitAdjustments, slot: int, chosen: Generated) -> None:
    adjustments.admit(slot, chosen.request)
    for token_id in chosen.output:
        adjustments.commit(slot, token_id)


def window_of(slot: int, chosen: Generated) -> list[DrawRow]:
    """A row for the committed tokens and one for each draft."""
    running = chosen.running()
    return [running.draw_row(slot, chosen.drafts[:count]) for count in range(len(chosen.drafts) + 1)]


def apply(adjustments: LogitAdjustments, logits: Tensor, rows: list[DrawRow]) -> Tensor:
    return adjustments.apply(logits, rows, DrawBuffers(len(rows)).write(rows))


def random_logits(seed: int, rows: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return (torch.randn(rows, WIDTH, generator=torch.Generator().manual_seed(seed)) * 5).to(dtype)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(generated(), min_size=NUM_SLOTS, max_size=NUM_SLOTS),
    generated(),
    st.integers(0, 10_000),
    st.sampled_from([1, 2]),
    st.sampled_from([torch.float32, torch.bfloat16]),
)
def test_every_row_of_every_window_is_adjusted_by_its_own_history(
    all_chosen: list[Generated], earlier: Generated, seed: int, world_size: int, dtype: torch.dtype
) -> None:
    rows = [row for slot, chosen in enumerate(all_chosen) for row in window_of(slot, chosen)]
    befores = [chosen.before(count) for chosen in all_chosen for count in range(len(chosen.drafts) + 1)]
    logits = random_logits(seed, len(rows), dtype)
    parts = []
    for rank, part in enumerate(logits.chunk(world_size, dim=1)):
        adjustments = build(world_size, rank)
        put(adjustments, 1, earlier)
        for slot, chosen in enumerate(all_chosen):
            put(adjustments, slot, chosen)
        parts.append(apply(adjustments, part.contiguous(), rows))
    pages = [
        adjust(page, row.params, before)
        for page, row, before in zip(logits.double().tolist(), rows, befores, strict=True)
    ]
    assert torch.equal(torch.cat(parts, dim=1).double(), torch.tensor(pages, dtype=torch.float64))


@settings(max_examples=60, deadline=None)
@given(generated(), st.integers(0, 10_000))
def test_a_row_after_drafts_equals_the_row_after_the_same_tokens_were_committed(chosen: Generated, seed: int) -> None:
    logits = random_logits(seed, 1)
    drafted, serial = build(), build()
    put(drafted, 2, chosen)
    put(serial, 0, chosen)
    running = chosen.running()
    for count, row in enumerate(window_of(2, chosen)):
        assert torch.equal(apply(drafted, logits, [row]), apply(serial, logits, [running.draw_row(0)]))
        if count < len(chosen.drafts):
            serial.commit(0, chosen.drafts[count])
            running.commit(chosen.drafts[count])


@settings(max_examples=60, deadline=None)
@given(st.lists(generated(), min_size=NUM_SLOTS, max_size=NUM_SLOTS), st.integers(0, 10_000))
def test_a_rows_bits_do_not_depend_on_the_other_rows(all_chosen: list[Generated], seed: int) -> None:
    adjustments = build(masked=frozenset({5, 25}))
    for slot, chosen in enumerate(all_chosen):
        put(adjustments, slot, chosen)
    rows = [row for slot, chosen in enumerate(all_chosen) for row in window_of(slot, chosen)]
    logits = random_logits(seed, len(rows))
    order = random.Random(seed).sample(range(len(rows)), len(rows))
    alone = [apply(adjustments, logits[place : place + 1], [rows[place]]) for place in order]
    together = apply(adjustments, logits[order], [rows[place] for place in order])
    assert torch.equal(together, torch.cat(alone))
    assert bool((together[:, [5, 25]] == -torch.inf).all())


PENALTIES = SamplingParams(0, repetition_penalty=2.0, frequency_penalty=0.5, presence_penalty=0.25)
SAID = Generated(Request("one", (4, 5), PENALTIES, Limits(9)), output=(6, 6, 7), drafts=())


@pytest.mark.parametrize(
    ("token_id", "logit", "expected"),
    [
        (4, 3.0, 1.5),  # prompt only: the repetition penalty
        (4, -3.0, -6.0),
        (6, 3.0, 0.25),  # twice in the output: 1.5 - 2 * 0.5 - 0.25
        (7, -3.0, -6.75),
        (8, 3.0, 3.0),  # nowhere
    ],
)
def test_repetition_counts_prompt_and_output_the_others_count_output_only(
    token_id: int, logit: float, expected: float
) -> None:
    adjustments = build()
    put(adjustments, 0, SAID)
    logits = torch.full((1, WIDTH), logit)
    assert apply(adjustments, logits, window_of(0, SAID))[0, token_id] == expected


def test_ends_are_masked_until_min_tokens_exist_and_prior_output_counts() -> None:
    limits = Limits(9, frozenset({8}), min_tokens=3)
    request = Request("one", (1, 2, 2), SamplingParams(0, temperature=0), limits, num_prior_output_tokens=1)
    adjustments, running = build(), SlotRequest.admit(request)
    adjustments.admit(0, request)
    masked = []
    for token_id in (5, 5, 5):
        found = apply(adjustments, torch.zeros(1, WIDTH), [running.draw_row(0)])[0]
        masked.append((found == -torch.inf).nonzero()[:, 0].tolist())
        running.commit(token_id)
        adjustments.commit(0, token_id)
    assert masked == [[3, 8, 20], [3, 8, 20], []]


@pytest.mark.parametrize("penalty", [5e-324, 1e-300, 1e300, 1.7e308])
@pytest.mark.parametrize("logit", [-3.4e38, -1.0, 0.0, 1.0, 3.4e38])
def test_no_parameter_makes_a_logit_infinite(penalty: float, logit: float) -> None:
    sampling = SamplingParams(0, repetition_penalty=penalty, frequency_penalty=-2, logit_bias=((4, 100.0), (6, -100.0)))
    chosen = replace(SAID, request=replace(SAID.request, sampling=sampling))
    adjustments = build()
    put(adjustments, 0, chosen)
    found = apply(adjustments, torch.full((1, WIDTH), logit), window_of(0, chosen))
    assert bool((found.abs() <= LARGEST_LOGIT).all())


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_broken_logit_stays_broken(broken: float) -> None:
    adjustments = build()
    put(adjustments, 0, SAID)
    logits = torch.zeros(1, WIDTH)
    logits[0, 6] = broken
    assert not apply(adjustments, logits, window_of(0, SAID))[0, 6].isfinite()


def test_rows_that_ask_for_nothing_are_not_touched() -> None:
    adjustments = build()
    request = Request("one", (1, 2), SamplingParams(0), Limits(9))
    adjustments.admit(0, request)
    logits = random_logits(1, 1)
    assert apply(adjustments, logits, [SlotRequest.admit(request).draw_row(0)]) is logits


def test_the_tables_of_a_slot_have_one_size_whatever_the_history() -> None:
    adjustments = build()
    before = adjustments.nbytes, adjustments.data_pointers()
    put(adjustments, 0, replace(SAID, output=tuple(range(WIDTH)) * 50))
    apply(adjustments, random_logits(1, 1), window_of(0, SAID))
    assert (adjustments.nbytes, adjustments.data_pointers()) == before
    assert adjustments.nbytes == SLOT_COLUMN_BYTES * NUM_SLOTS * WIDTH
