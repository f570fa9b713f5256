"""The comparison with Transformers notices single-line faults: what a green comparison is worth."""

import pytest

from support.forward_case import ForwardCase, forward_case
from support.forward_faults import FAULTS
from support.forward_steps import prompt_steps, window_steps
from support.hf_models import HfShape
from support.hf_reference import assert_clamps_act
from support.logit_agreement import LogitMismatch, TooManyNearTies, assert_few_near_ties, compare
from support.planted_fault import Fault, planted
from support.selection_watch import SelectionMismatch

# Everything once in two layers. The constants are large, so that a wrong epsilon or an unconverged Sinkhorn shows.
SHAPE = HfShape(
    "kD",
    hidden=40,
    nope=20,
    v_head=20,
    swiglu_limit=2.0,
    rms_norm_eps=0.02,
    hc_eps=0.03,
    sinkhorn_iters=3,
    seed=7,
)
LENGTH = 160


@pytest.fixture
def case() -> ForwardCase:
    return forward_case(SHAPE)


def assert_agrees(case: ForwardCase) -> None:
    """Three chunks of a prompt, then windows; two ranks; weights read anew, for faults of the loader."""
    steps = prompt_steps(130, 64) + window_steps(130, [1, 16, 2, 3, 8])
    assert_few_near_ties([compare(case, case.reference(LENGTH), steps, world_size=2, fresh=True)])


def test_without_a_fault_the_forward_agrees(case: ForwardCase) -> None:
    assert_clamps_act(case.reference(LENGTH))
    assert_agrees(case)


@pytest.mark.parametrize("fault", FAULTS, ids=[fault.name.replace(" ", "-") for fault in FAULTS])
def test_a_single_line_fault_is_noticed(case: ForwardCase, fault: Fault) -> None:
    assert case.reference(LENGTH).logits.isfinite().all()
    with planted(fault), pytest.raises((LogitMismatch, SelectionMismatch, TooManyNearTies)):
        assert_agrees(case)
