"""The sampler against the draw on one page: every combination of parameters, ties, masks, ranks, batches."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from support.one_page_sampler import Before, draw_token, logprob, top_logprobs
from support.thread_transport import run_ranks
from twinspark_engine.ranks.transport import LocalTransport, Transport
from twinspark_engine.request import Limits, Request, SamplingParams
from twinspark_engine.runner.sampling import sampler
from twinspark_engine.runner.sampling.adjustments import LogitAdjustments
from twinspark_engine.runner.sampling.exchange import VocabularyExchange
from twinspark_engine.runner.sampling.logprobs import PromptScorer
from twinspark_engine.runner.sampling.rows import DrawnToken, DrawRow
from twinspark_engine.runner.sampling.sampler import LogitsError, Sampler
from twinspark_engine.runner.sampling.vocabulary import VocabularySlice

MAX_ROWS = 32


def row_of(params: SamplingParams, position: int, num_top_logprobs: int | None = None) -> DrawRow:
    """A row whose history changes nothing."""
    return DrawRow(0, params, position, num_top_logprobs=num_top_logprobs)


def build_exchange(transport: Transport, columns: int) -> VocabularyExchange:
    return VocabularyExchange(transport, VocabularySlice(transport.rank * columns, columns))


def build_sampler(
    transport: Transport,
    columns: int,
    masked: frozenset[int] = frozenset(),
    max_rows: int = MAX_ROWS,
    requests: Sequence[Request] = (),
) -> Sampler:
    """requests[i] is in slot i; what it has said are its prior output tokens."""
    exchange = build_exchange(transport, columns)
    adjustments = LogitAdjustments(exchange.vocabulary, max(1, len(requests)), frozenset(), masked)
    for slot, request in enumerate(requests):
        adjustments.admit(slot, request)
    return Sampler(exchange, adjustments, max_rows)


def sample(
    logits: Tensor,
    rows: list[DrawRow],
    world_size: int,
    masked: frozenset[int] = frozenset(),
    requests: Sequence[Request] = (),
) -> list[DrawnToken]:
    """Tokens of all rows, which every rank must answer alike."""
    columns = logits.shape[1] // world_size

    def on_rank(transport: Transport) -> list[DrawnToken]:
        offset = transport.rank * columns
        own = logits[:, offset : offset + columns].contiguous()
        drawn = build_sampler(transport, columns, masked, requests=requests).sample(own, rows)
        return [token for token in drawn if isinstance(token, DrawnToken)]

    if world_size == 1:
        return on_rank(LocalTransport())
    answers = run_ranks(world_size, on_rank)
    assert all(answer == answers[0] for answer in answers)
    return answers[0]


def drawn_ids(logits: Tensor, rows: list[DrawRow], world_size: int, masked: frozenset[int] = frozenset()) -> list[int]:
    return [token.token_id for token in sample(logits, rows, world_size, masked)]


def ids_on_one_page(logits: Tensor, rows: list[DrawRow], masked: frozenset[int] = frozenset()) -> list[int]:
    pages = logits.double().tolist()
    return [draw_token(page, row.params, row.position, masked) for page, row in zip(pages, rows, strict=True)]


@st.composite
def any_params(draw: st.DrawFn) -> SamplingParams:
    return SamplingParams(
        seed=draw(st.integers(0, 2**64 - 1)),
        temperature=draw(st.sampled_from([0.0, 1e-9, 0.3, 1.0, 1.7, 2.0]) | st.floats(0.05, 2)),
        top_k=draw(st.sampled_from([0, 0, 1, 2, 7, 64, 5000])),
        top_p=draw(st.sampled_from([1.0, 1.0, 0.95, 0.5, 1e-9, 1 - 2**-53]) | st.floats(0.001, 1)),
        min_p=draw(st.sampled_from([0.0, 0.0, 0.02, 0.3, 1.0]) | st.floats(0, 1)),
    )


def coarse_logits(seed: int, rows: int, width: int, step: float) -> Tensor:
    """Random logits rounded to multiples of step: the coarser, the more exact ties."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(rows, width, generator=generator) * 3 / step).round() * step


@settings(max_examples=250, deadline=None)
@given(
    st.lists(any_params(), min_size=1, max_size=5),
    st.integers(0, 10_000),
    st.sampled_from([2, 24, 90, 600]),
    st.sampled_from([1e-4, 0.25, 2.0, 50.0]),
    st.sampled_from([1, 2]),
    st.sampled_from([1.0, 0.9, 0.4]),
    st.sampled_from([3, 40, 1024]),
)
def test_tokens_equal_the_draw_on_one_page(
    all_params: list[SamplingParams],
    seed: int,
    width: int,
    step: float,
    world_size: int,
    unmasked: float,
    candidates: int,
) -> None:
    logits = coarse_logits(seed, len(all_params), width, step)
    rows = [row_of(params, 10 + place) for place, params in enumerate(all_params)]
    masked = frozenset() if unmasked == 1 else frozenset({seed % width, *range(max(2, int(width * unmasked)), width)})
    with pytest.MonkeyPatch.context() as patch:
        # A small number of candidates sends nuclei past them into whole rows.
        patch.setattr(sampler, "NUCLEUS_CANDIDATES", candidates)
        found = drawn_ids(logits, rows, world_size, masked)
    assert found == ids_on_one_page(logits, rows, masked)


@settings(max_examples=120, deadline=None)
@given(
    st.lists(any_params(), min_size=1, max_size=5),
    st.integers(0, 10_000),
    st.sampled_from([2, 24, 90]),
    st.sampled_from([0.25, 2.0]),
    st.sampled_from([1, 2]),
)
def test_tokens_with_penalties_and_bias_equal_the_draw_on_one_page(
    all_params: list[SamplingParams], seed: int, width: int, step: float, world_size: int
) -> None:
    source = random.Random(seed)
    logits = coarse_logits(seed, len(all_params), width, step)
    requests = [
        Request(
            f"request {place}",
            tuple(source.randrange(width) for _ in range(10)),
            replace(
                params,
                repetition_penalty=source.choice([1.0, 1.3, 0.7]),
                frequency_penalty=source.choice([0.0, 0.5, -1.0]),
                presence_penalty=source.choice([0.0, 1.5]),
                logit_bias=((source.randrange(width), source.choice([-100.0, 3.0, 100.0])),),
            ),
            Limits(9),
            num_prior_output_tokens=source.randrange(10),
        )
        for place, params in enumerate(all_params)
    ]
    rows = [DrawRow(slot, request.sampling, 10) for slot, request in enumerate(requests)]
    found = [token.token_id for token in sample(logits, rows, world_size, requests=requests)]
    assert found == [
        draw_token(page, request.sampling, 10, before=Before(request.prompt_token_ids, request.prior_output_token_ids))
        for page, request in zip(logits.double().tolist(), requests, strict=True)
    ]


@pytest.mark.parametrize("world_size", [1, 2])
@pytest.mark.parametrize("ties", [15, 64, 200])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_ties_past_the_cut_never_reach_the_draw(world_size: int, ties: int, dtype: torch.dtype) -> None:
    logits = torch.full((1, 800), -4.0, dtype=dtype)
    # 60 above the cut of 64, then tied ids on both sides of the rank border.
    logits[0, 100:160] = 6.0
    logits[0, 400 - ties : 400 + ties] = 5.0
    for seed in range(30):
        rows = [row_of(SamplingParams(seed, top_k=64), 9)]
        found = drawn_ids(logits, rows, world_size)
        assert found == ids_on_one_page(logits, rows)
        assert found[0] in range(100, 160) or found[0] in range(400 - ties, 404 - ties)


@pytest.mark.parametrize("world_size", [1, 2])
def test_a_wide_nucleus_uses_whole_rows_of_a_real_vocabulary(world_size: int) -> None:
    logits = coarse_logits(3, 3, 6000, 0.25)
    rows = [
        row_of(SamplingParams(seed, temperature=2, top_p=0.99, min_p=min_p), 70)
        for seed, min_p in ((1, 0.0), (2, 0.01), (3, 0.0))
    ]
    assert drawn_ids(logits, rows, world_size) == ids_on_one_page(logits, rows)


@pytest.mark.parametrize("world_size", [1, 2])
@pytest.mark.parametrize(
    ("top_p", "kept"), [(0.25, 2), (0.5, 4), (math.nextafter(0.5, 1), 5), (math.nextafter(1, 0), 8)]
)
def test_the_nucleus_ends_exactly_where_its_mass_is_reached(world_size: int, top_p: float, kept: int) -> None:
    logits = torch.full((1, 64), -90.0)
    logits[0, 30:38] = 2.0
    for top_k in (0, 8, 20):
        rows = [row_of(SamplingParams(seed, top_k=top_k, top_p=top_p), 4) for seed in range(MAX_ROWS)]
        found = drawn_ids(logits.expand(MAX_ROWS, -1).contiguous(), rows, world_size)
        assert set(found) == set(range(30, 30 + kept))


def test_candidates_of_one_rank_never_stand_for_those_that_another_did_not_send(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sampler, "NUCLEUS_CANDIDATES", 4)
    logits = torch.full((1, 64), -30.0)
    # Rank 0 holds 8 ids and sends 4; the nucleus is 7 of them. The 4 of rank 1 would fill it up as well.
    logits[0, 3:11] = 0.0
    logits[0, 40:44] = -0.1
    rows = [row_of(SamplingParams(seed, top_p=0.6), 4) for seed in range(MAX_ROWS)]
    assert set(drawn_ids(logits.expand(MAX_ROWS, -1).contiguous(), rows, 2)) == set(range(3, 10))


def test_min_p_is_measured_against_the_likeliest_of_all_ranks() -> None:
    logits = torch.full((1, 1000), 4.0)
    logits[0, 5] = 5.0
    rows = [row_of(SamplingParams(seed, min_p=0.5), 4) for seed in range(MAX_ROWS)]
    assert set(drawn_ids(logits.expand(MAX_ROWS, -1).contiguous(), rows, 2)) == {5}


def rows_of_every_kind(seed: int) -> list[DrawRow]:
    kinds = [
        SamplingParams(seed, temperature=0),
        SamplingParams(seed),
        SamplingParams(seed, top_p=0.95),
        SamplingParams(seed, temperature=2, top_p=0.999),
        SamplingParams(seed, top_k=20, top_p=0.9, min_p=0.05),
        SamplingParams(seed, min_p=0.1),
    ]
    return [row_of(params, 5 + place, place % 3 if place % 2 else None) for place, params in enumerate(kinds)]


@pytest.mark.parametrize("world_size", [1, 2])
@pytest.mark.parametrize("width", [1000, 3000])
def test_a_row_draws_and_scores_the_same_alone_and_in_any_batch(world_size: int, width: int) -> None:
    rows = rows_of_every_kind(11) + rows_of_every_kind(12)
    logits = coarse_logits(8, len(rows), width, 0.25)
    together = sample(logits, rows, world_size)
    alone = [sample(logits[place : place + 1], [row], world_size)[0] for place, row in enumerate(rows)]
    assert together == alone
    order = list(range(len(rows)))
    random.Random(4).shuffle(order)
    shuffled = sample(logits[order], [rows[place] for place in order], world_size)
    assert shuffled == [alone[place] for place in order]


@pytest.mark.parametrize("world_size", [1, 2])
def test_logprobs_describe_the_raw_distribution_of_the_whole_vocabulary(world_size: int) -> None:
    logits = coarse_logits(21, 4, 300, 0.5)
    sampling = SamplingParams(3, temperature=0.2, top_k=2, min_p=0.5, repetition_penalty=1.5, presence_penalty=-2)
    sampling = replace(sampling, logit_bias=tuple((token_id, 0.5 * (token_id % 7)) for token_id in range(150)))
    request = Request("one", tuple(range(0, 300, 3)), sampling, Limits(9), num_prior_output_tokens=40)
    rows = [DrawRow(0, sampling, 40, num_top_logprobs=num_top) for num_top in (0, 1, 5, 20)]
    # Masked ids are never drawn, yet they count and are reported; penalties and bias move the draw only.
    drawn = sample(logits, rows, world_size, frozenset(range(150, 300)), [request])
    for page, row, token in zip(logits.double().tolist(), rows, drawn, strict=True):
        assert token.token_id < 150
        assert token.logprobs is not None
        assert token.logprobs.logprob == pytest.approx(logprob(page, token.token_id), abs=1e-12)
        ids, values = top_logprobs(page, row.num_top_logprobs or 0)
        assert token.logprobs.top_token_ids == ids
        assert token.logprobs.top_logprobs == pytest.approx(values, abs=1e-12)


@pytest.mark.parametrize("world_size", [1, 2])
@pytest.mark.parametrize("width", [6, 300])
def test_prompt_scores_cover_every_row_in_tiles(world_size: int, width: int) -> None:
    logits = coarse_logits(31, 150, width, 0.5)
    targets = torch.randint(0, width, (150,), generator=torch.Generator().manual_seed(1))
    columns = width // world_size

    def on_rank(transport: Transport) -> object:
        offset = transport.rank * columns
        exchange = build_exchange(transport, columns)
        scorer = PromptScorer(exchange, lambda hidden: logits[hidden[:, 0].long(), offset : offset + columns])
        return scorer.score(torch.arange(150.0)[:, None], targets, 5)

    answers = run_ranks(world_size, on_rank)
    assert all(answer == answers[0] for answer in answers)
    entries = answers[0]
    assert isinstance(entries, list)
    for page, target, entry in zip(logits.double().tolist(), targets.tolist(), entries, strict=True):
        assert entry.logprob == pytest.approx(logprob(page, target), abs=1e-12)
        ids, values = top_logprobs(page, 5)
        assert entry.top_token_ids == ids
        assert entry.top_logprobs == pytest.approx(values, abs=1e-12)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("column", [3, 17])
def test_a_broken_row_is_refused_on_every_rank(bad: float, column: int) -> None:
    logits = torch.zeros(2, 20)
    logits[1, column] = bad

    def on_rank(transport: Transport) -> str:
        offset = transport.rank * 10
        rows = [row_of(SamplingParams(0, temperature=0), 1)] * 2
        try:
            build_sampler(transport, 10).sample(logits[:, offset : offset + 10], rows)
        except LogitsError as error:
            return str(error)
        return "drawn"

    assert run_ranks(2, on_rank) == ["the model's logits are not finite"] * 2


def test_more_rows_than_allocated_are_refused() -> None:
    with pytest.raises(ValueError, match="3 rows exceed the 2"):
        build_sampler(LocalTransport(), 4, max_rows=2).sample(torch.zeros(3, 4), [row_of(SamplingParams(0), 1)] * 3)
