"""Segments: how packed rows are read."""

import pytest
import torch

from twinspark_kernels.segments import Segment, check_rows, check_shape, split_segments, uniform_runs


def test_rows_of_a_slot_form_a_segment_and_padding_rows_none() -> None:
    slots = torch.tensor([2, 2, -1, 0, -1, -1])
    positions = torch.tensor([7, 8, 0, 64, 0, 0])
    assert split_segments(slots, positions) == [Segment(2, 0, 2, 7), Segment(0, 3, 4, 64)]


def test_no_rows_give_no_segments() -> None:
    nothing = torch.zeros(0, dtype=torch.int64)
    assert split_segments(nothing, nothing) == []


@pytest.mark.parametrize(
    ("slots", "positions"),
    [([1, 1], [3, 5]), ([1, 1], [3, 3]), ([1, 1], [3, 2]), ([1, 0, 1], [3, 0, 4]), ([1, -1, 1], [3, 0, 4])],
    ids=["gap", "repeated", "descending", "split", "split by padding"],
)
def test_a_slot_whose_rows_are_not_consecutive_is_refused(slots: list[int], positions: list[int]) -> None:
    with pytest.raises(ValueError, match="must"):
        split_segments(torch.tensor(slots), torch.tensor(positions))


def test_runs_join_neighbours_of_equal_length_only() -> None:
    one, two, three, four = Segment(0, 0, 2, 0), Segment(1, 2, 4, 0), Segment(2, 5, 7, 0), Segment(3, 7, 8, 0)
    assert list(uniform_runs([one, two, three, four])) == [[one, two], [three], [four]]


def test_wrong_slots_and_shapes_are_refused_by_name() -> None:
    rows = torch.zeros(3, dtype=torch.int64)
    with pytest.raises(TypeError, match="slots: must be int64"):
        check_rows(3, rows.int(), rows)
    with pytest.raises(ValueError, match="positions: must have shape"):
        check_rows(3, rows, rows[:2])
    with pytest.raises(ValueError, match=r"state: must have shape \(any, 3, 8\), got \(5, 3, 7\)"):
        check_shape("state", torch.zeros(5, 3, 7), (None, 3, 8))
