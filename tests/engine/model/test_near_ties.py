"""A row whose choice differs at a near tie is counted, and goes on with the choice of the reference."""

import pytest
import torch

from support.forward_case import forward_case
from support.forward_faults import FAULTS
from support.forward_steps import prompt_steps
from support.hf_models import HfShape
from support.hf_reference import HfRun, Selection
from support.logit_agreement import Agreement, TooManyNearTies, assert_few_near_ties, compare
from support.planted_fault import planted
from support.selection_watch import NearTie, SelectionMismatch, SelectionWatch
from twinspark_kernels.row_class import RowClass

SHAPE = HfShape("kDk")
OPTIONS = {"top_k": 2, "scaling": 2.5, "row_class": RowClass.PROMPT}


@pytest.mark.parametrize("world_size", [1, 2])
def test_rows_at_a_tie_go_on_with_the_choice_of_the_reference(world_size: int) -> None:
    case = forward_case(SHAPE)
    (fault,) = (fault for fault in FAULTS if fault.name == "ties go to the higher pool")
    with planted(fault):
        agreement = compare(case, case.reference(200), prompt_steps(200), world_size)
    assert {tie.kind for tie in agreement.near_ties} == {"pools"}
    assert all(tie.gap == 0 and tie.position + 1 >= SHAPE.dense_limit for tie in agreement.near_ties)
    with pytest.raises(TooManyNearTies):
        assert_few_near_ties([agreement])


def test_one_tied_row_in_five_hundred_is_let_through() -> None:
    ties = frozenset({NearTie("experts", 1, 7, 0.0), NearTie("experts", 2, 7, 1e-6)})
    assert_few_near_ties([Agreement(500, 0.0, ties)])
    with pytest.raises(TooManyNearTies):
        assert_few_near_ties([Agreement(499, 0.0, ties)])


def watch_of_two_rows(second_score: float) -> SelectionWatch:
    """A reference that took experts 0 and 2 in row 1, where expert 1 scored `second_score` and expert 2 scored 0.5."""
    scores = torch.tensor([[0.9, 0.7, 0.1], [0.9, second_score, 0.5]])
    run = HfRun([0, 0], torch.empty(0), experts={3: Selection(scores, torch.tensor([[0, 1], [0, 2]]))})
    watch = SelectionWatch(run, SHAPE)
    watch.begin(torch.arange(2))
    return watch


def test_experts_of_the_reference_get_their_own_weights() -> None:
    x, bias = torch.eye(2, 16), torch.zeros(3)
    weight = torch.zeros(3, 16)
    weight[:, :2] = torch.tensor([[2.0, 2.0], [1.0, 0.1], [-1.0, 0.1]])
    watch = watch_of_two_rows(second_score=0.5)
    ids, weights = watch.experts(x, weight, bias, **OPTIONS)
    assert ids.tolist() == [[0, 1], [0, 2]]
    chosen = torch.tensor([2.0, 0.1]).sigmoid()
    torch.testing.assert_close(weights[1], chosen / chosen.sum() * 2.5)
    assert {(tie.kind, tie.layer, tie.position) for tie in watch.near_ties} == {("experts", 3, 1)}


def test_another_choice_without_a_tie_is_a_mismatch() -> None:
    weight = torch.zeros(3, 16)
    weight[:, :2] = torch.tensor([[2.0, 2.0], [1.0, 0.1], [-1.0, 0.1]])
    with pytest.raises(SelectionMismatch, match="experts of layer 3, position 1"):
        watch_of_two_rows(second_score=0.4).experts(torch.eye(2, 16), weight, torch.zeros(3), **OPTIONS)
