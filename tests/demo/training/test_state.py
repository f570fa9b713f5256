"""Which stages are left for a state."""

import pytest

from twinspark_demo.checkpoint import Place
from twinspark_demo.training.stages import LONG, PLAN, RECOVERY, SHORT
from twinspark_demo.training.state import RunState


def test_a_run_that_starts_has_all_stages_before_it() -> None:
    assert RunState().rest_of([LONG, RECOVERY]) == [LONG, RECOVERY]


def test_a_reached_stage_and_those_after_it_are_left() -> None:
    assert list(RunState(Place("long", 7, 0)).rest_of(PLAN)) == [LONG, RECOVERY]


def test_a_plan_without_the_reached_stage_is_refused() -> None:
    with pytest.raises(ValueError, match=r"in stage recovery, which is not among short, long: leave it in"):
        RunState(Place("recovery", 7, 0)).rest_of([SHORT, LONG])
