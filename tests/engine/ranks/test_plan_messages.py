"""A plan that travels to another rank arrives as it was made."""

from dataclasses import MISSING, fields
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from twinspark_engine.ranks.convert import plan_from_proto, plan_to_proto
from twinspark_engine.request import Grammar, Limits, Request, SamplingParams
from twinspark_engine.scheduler.plan import Admission, StepPlan

GRAMMAR = Grammar("handle", 7, "source", starts_after_thinking=True)
FULL = Request(
    "one",
    (5, 6, 7),
    SamplingParams(
        seed=2**64 - 5,
        temperature=0.7,
        top_k=9,
        top_p=0.8,
        min_p=0.1,
        repetition_penalty=1.3,
        frequency_penalty=-0.4,
        presence_penalty=1.5,
        logit_bias=((3, -100.0), (8, 0.1)),
    ),
    Limits(30, frozenset({4, 9}), ignore_eos=True, min_tokens=7),
    num_top_logprobs=0,
    num_prompt_top_logprobs=3,
    num_prior_output_tokens=2,
    is_background=True,
    grammar=GRAMMAR,
)


def travel(request: Request) -> Request:
    """The request of an admission after a way over the wire."""
    plan = StepPlan(1, 0, admissions=(Admission(0, request),))
    message = plan_to_proto(plan)
    arrived = plan_from_proto(type(message).FromString(message.SerializeToString()))
    assert arrived.admissions[0].slot == 0
    return arrived.admissions[0].request


def has_default(part: Any, name: str) -> bool:
    field = next(field for field in fields(part) if field.name == name)
    default: Any = field.default_factory() if field.default_factory is not MISSING else field.default
    return bool(getattr(part, name) == default)


def test_every_field_of_a_request_arrives() -> None:
    for part in (FULL, FULL.sampling, FULL.limits, GRAMMAR):
        assert not [field.name for field in fields(part) if has_default(part, field.name)], "the case lacks a field"
    assert travel(FULL) == FULL


@settings(deadline=None)
@given(
    st.floats(0, exclude_min=True, allow_infinity=False),
    st.floats(-2, 2),
    st.dictionaries(st.integers(0, 2**32 - 1), st.floats(-100, 100)),
    st.integers(0, 2**64 - 1),
)
def test_numbers_arrive_bit_for_bit(repetition: float, frequency: float, bias: dict[int, float], seed: int) -> None:
    sampling = SamplingParams(
        seed, repetition_penalty=repetition, frequency_penalty=frequency, logit_bias=tuple(sorted(bias.items()))
    )
    assert travel(Request("one", (1,), sampling, Limits(1))).sampling == sampling
