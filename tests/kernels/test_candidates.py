"""Candidates: exact order, exact ties, and bits that do not depend on the batch."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from support.row_invariance import WIDTHS, check_row_invariance
from twinspark_kernels.candidates import log_sum_exp, top_candidates


def sorted_by_hand(row: list[float], count: int, id_offset: int) -> tuple[list[float], list[int]]:
    order = sorted(range(len(row)), key=lambda column: (-row[column], column))[:count]
    return [row[column] for column in order], [column + id_offset for column in order]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_candidates_are_the_row_sorted_by_value_then_id(data: st.DataObject) -> None:
    width = data.draw(st.integers(1, 200))
    count = data.draw(st.integers(1, width))
    level = st.sampled_from([-math.inf, -2.0, -0.0, 0.0, 0.5, 3.25])
    rows = data.draw(st.lists(st.lists(level, min_size=width, max_size=width), min_size=1, max_size=4))
    dtype = data.draw(st.sampled_from([torch.float32, torch.bfloat16]))
    values, ids = top_candidates(torch.tensor(rows, dtype=dtype), count, 70)
    for row, row_values, row_ids in zip(rows, values.tolist(), ids.tolist(), strict=True):
        assert (row_values, row_ids) == sorted_by_hand(row, count, 70)


def test_sixty_four_ties_past_the_cut_leave_the_lowest_ids() -> None:
    logits = torch.zeros(1, 1000)
    logits[0, 100:228] = 1.0
    _, ids = top_candidates(logits, 64, 0)
    assert ids[0].tolist() == list(range(100, 164))


def test_a_nan_comes_first_as_infinity() -> None:
    values, ids = top_candidates(torch.tensor([[1.0, math.nan, 2.0]]), 2, 0)
    assert (values[0, 0].item(), ids[0].tolist()) == (math.inf, [1, 2])


@pytest.mark.parametrize("width", [1, *WIDTHS, 1024, 1025, 50_000])
def test_the_log_sum_keeps_its_bits_in_any_batch(width: int) -> None:
    check_row_invariance(log_sum_exp, lambda n: (torch.randn(n, width) * 4,))


@pytest.mark.parametrize("width", [*WIDTHS, 50_000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def test_candidates_of_a_row_are_the_same_in_any_batch(width: int, dtype: torch.dtype) -> None:
    count = min(64, width // 2)
    # Many ties in bf16, whose steps are coarse.
    check_row_invariance(
        lambda logits: top_candidates(logits, count, 70), lambda n: ((torch.randn(n, width) * 4).to(dtype),)
    )


@pytest.mark.parametrize("width", [1, 100, 1025, 50_000])
def test_the_log_sum_is_that_of_torch(width: int) -> None:
    rows = torch.randn(17, width) * 4
    # float64 sums of up to 50,000 terms: about 1e-13 relative; exp and log add a few units in the last place.
    torch.testing.assert_close(log_sum_exp(rows), torch.logsumexp(rows.double(), dim=-1), rtol=1e-12, atol=1e-12)


def test_refused_inputs_raise() -> None:
    with pytest.raises(ValueError, match="count must be"):
        top_candidates(torch.zeros(1, 4), 5, 0)
    with pytest.raises(ValueError, match="floating point"):
        top_candidates(torch.zeros(1, 4, dtype=torch.int64), 1, 0)
    with pytest.raises(ValueError, match="floating point"):
        log_sum_exp(torch.zeros(4))
