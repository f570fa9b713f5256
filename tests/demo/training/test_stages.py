"""Rates and plans of the stages."""

import pytest
import typer

from twinspark_demo.row_batch import TokenClass
from twinspark_demo.training.__main__ import planned
from twinspark_demo.training.stages import PLAN, SHORT


def test_the_rate_warms_up_in_each_run_and_falls_over_the_stage() -> None:
    first, last = SHORT.learning_rates
    assert SHORT.learning_rate(0, 0) == pytest.approx(first / SHORT.warmup_steps)
    assert SHORT.learning_rate(0, SHORT.warmup_steps) == pytest.approx(first)
    assert SHORT.learning_rate(SHORT.steps, SHORT.warmup_steps) == pytest.approx(last)
    halfway = SHORT.steps // 2
    assert SHORT.learning_rate(halfway, halfway) == pytest.approx((first + last) / 2)
    assert SHORT.learning_rate(halfway, 0) == pytest.approx((first + last) / 2 / SHORT.warmup_steps)


def test_answers_weigh_most_and_silence_nothing() -> None:
    for stage in PLAN:
        weights = stage.class_weights()
        assert weights[TokenClass.ANSWER] == 1.0
        assert 0 < weights[TokenClass.PROMPT] < 1
        assert weights[TokenClass.SILENT] == 0


def test_only_what_follows_quantization_sees_selected_pools() -> None:
    for stage in PLAN:
        assert {feed.options.sparse for feed in stage.feeds} == {stage.quantized}


def test_steps_are_set_by_stage() -> None:
    assert [stage.steps for stage in planned(["short=7", "recovery=0"])] == [7, PLAN[1].steps, 0]


@pytest.mark.parametrize("override", ["middle=3", "short", "short=x", "short=-1"])
def test_a_wrong_override_is_named(override: str) -> None:
    with pytest.raises(typer.BadParameter, match=override):
        planned([override])
