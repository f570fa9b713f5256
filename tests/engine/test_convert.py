"""Requests of the wire: defaults filled in, every bad or unsupported field refused by name."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from twinspark.engine.v1 import engine_pb2 as pb
from twinspark_engine.convert import RequestBounds, event_to_proto, request_from_proto
from twinspark_engine.errors import GrammarUnavailableError, InvalidFieldError, UnsupportedFieldError
from twinspark_engine.request import FinishReason, Grammar, Limits
from twinspark_engine.scheduler.events import Finished, TokensCommitted
from twinspark_engine.scheduler.plan import TokenLogprobs
from twinspark_engine.seeds import seed_for

BOUNDS = RequestBounds(
    vocabulary_size=100,
    max_top_logprobs=20,
    seed_salt=7,
    eos_token_ids=frozenset({0, 1}),
    masked_token_ids=frozenset(range(90, 100)),
)
Change = Callable[[pb.GenerateRequest], object]


def message(**fields: object) -> pb.GenerateRequest:
    request = pb.GenerateRequest(request_id="r", prompt_token_ids=[1, 2, 3])
    request.limits.max_tokens = 4
    request.MergeFrom(pb.GenerateRequest(**fields))  # type: ignore[arg-type]
    return request


def test_absent_fields_are_off_and_the_seed_is_derived_from_the_prompt() -> None:
    request = request_from_proto(message(), BOUNDS)
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_k, sampling.top_p, sampling.min_p) == (1.0, 0, 1.0, 0.0)
    assert not sampling.changes_logits
    assert sampling.repetition_penalty == 1
    assert request.limits == Limits(4)
    assert sampling.seed == seed_for([1, 2, 3], 7)
    assert (request.num_top_logprobs, request.num_prompt_top_logprobs) == (None, None)


def test_the_seed_derives_from_the_ids_before_prior_output_and_takes_the_offset() -> None:
    request = request_from_proto(message(num_prior_output_tokens=2, sampling=pb.SamplingParams(seed_offset=5)), BOUNDS)
    assert request.sampling.seed == seed_for([1], 7) + 5


def test_a_negative_seed_is_taken_modulo_2_to_the_64() -> None:
    assert request_from_proto(message(sampling=pb.SamplingParams(seed=-3)), BOUNDS).sampling.seed == 2**64 - 3


def test_log_probabilities_of_only_the_token_itself_are_not_the_same_as_none() -> None:
    request = request_from_proto(message(logprobs=pb.LogprobsParams(), prompt_logprobs=pb.LogprobsParams()), BOUNDS)
    assert (request.num_top_logprobs, request.num_prompt_top_logprobs) == (0, 0)


@pytest.mark.parametrize("is_background", [False, True])
def test_the_priority_is_read(is_background: bool) -> None:
    priority = pb.PRIORITY_BACKGROUND if is_background else pb.PRIORITY_UNSPECIFIED
    assert request_from_proto(message(priority=priority), BOUNDS).is_background == is_background


BAD: dict[str, Change] = {
    "priority": lambda m: setattr(m, "priority", 7),
    "request_id": lambda m: m.ClearField("request_id"),
    "prompt_token_ids": lambda m: m.prompt_token_ids.append(100),
    "num_prior_output_tokens": lambda m: setattr(m, "num_prior_output_tokens", 3),
    "sampling.temperature": lambda m: setattr(m.sampling, "temperature", float("nan")),
    "sampling.top_p": lambda m: setattr(m.sampling, "top_p", 0.0),
    "sampling.min_p": lambda m: setattr(m.sampling, "min_p", 1.5),
    "sampling.logit_bias": lambda m: m.sampling.logit_bias.update({100: 1.0}),
    "limits.min_tokens": lambda m: setattr(m.limits, "min_tokens", 5),
    "limits.stop_token_ids": lambda m: m.limits.stop_token_ids.append(100),
    "logprobs.num_top": lambda m: setattr(m.logprobs, "num_top", 21),
    "prompt_logprobs.num_top": lambda m: setattr(m.prompt_logprobs, "num_top", 21),
}


BAD_VALUES: list[tuple[str, float]] = [
    *(("sampling.temperature", value) for value in (-1.0, math.nan, math.inf)),
    *(("sampling.repetition_penalty", value) for value in (0.0, -1.0, math.nan, math.inf)),
    *((f"sampling.{name}_penalty", value) for name in ("frequency", "presence") for value in (2.1, -2.1, math.nan)),
    *(("sampling.logit_bias", value) for value in (100.5, -100.5, math.nan)),
]


@pytest.mark.parametrize("name", BAD)
def test_a_field_out_of_range_is_refused_by_name(name: str) -> None:
    request = message()
    BAD[name](request)
    with pytest.raises(InvalidFieldError) as refused:
        request_from_proto(request, BOUNDS)
    assert refused.value.metadata["field"] == name


@pytest.mark.parametrize(("name", "value"), BAD_VALUES)
def test_a_number_out_of_range_is_refused_by_name(name: str, value: float) -> None:
    request = message()
    if name == "sampling.logit_bias":
        request.sampling.logit_bias[3] = value
    else:
        setattr(request.sampling, name.removeprefix("sampling."), value)
    with pytest.raises(InvalidFieldError) as refused:
        request_from_proto(request, BOUNDS)
    assert refused.value.metadata["field"] == name


def test_min_tokens_may_reach_the_limit_with_prior_output_and_must_leave_a_token_to_draw() -> None:
    def limits_of(num_prior: int, **limits: object) -> Limits:
        asked = message(limits=pb.Limits(**limits), num_prior_output_tokens=num_prior)  # type: ignore[arg-type]
        return request_from_proto(asked, BOUNDS).limits

    assert limits_of(2, min_tokens=6).min_tokens == 6
    for num_prior, limits in ((1, {"min_tokens": 6}), (0, {"min_tokens": 1, "stop_token_ids": range(2, 90)})):
        with pytest.raises(InvalidFieldError) as refused:
            limits_of(num_prior, **limits)
        assert refused.value.metadata["field"] == "limits.min_tokens"
    assert limits_of(0, min_tokens=1, stop_token_ids=range(3, 90)).min_tokens == 1
    # The ids that end are not masked once prior output is as long as min_tokens.
    assert limits_of(1, min_tokens=1, stop_token_ids=range(2, 90)).min_tokens == 1


def test_logit_bias_is_sorted_so_that_all_ranks_hold_the_same() -> None:
    sampling = pb.SamplingParams(logit_bias={9: -100, 4: 2.5, 30: 100})
    assert request_from_proto(message(sampling=sampling), BOUNDS).sampling.logit_bias == (
        (4, 2.5),
        (9, -100),
        (30, 100),
    )


UNSUPPORTED: dict[str, Change] = {
    "images": lambda m: m.images.add(num_rows=4),
    "draft_mode": lambda m: setattr(m, "draft_mode", pb.DRAFT_MODE_MTP),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_what_this_engine_does_not_do_is_refused_by_name(name: str) -> None:
    request = message()
    UNSUPPORTED[name](request)
    with pytest.raises(UnsupportedFieldError) as refused:
        request_from_proto(request, BOUNDS)
    assert refused.value.metadata["field"] == name


def constrained(**fields: object) -> pb.GenerateRequest:
    values = {"handle": "h", "kind": 2, "source": "a+", "start": pb.GRAMMAR_START_AFTER_THINKING}
    return message(grammar=pb.Grammar(**(values | fields)))  # type: ignore[arg-type]


WITH_GRAMMARS = replace(BOUNDS, has_grammar_service=True)


@pytest.mark.parametrize(
    ("start", "is_late"),
    [
        (pb.GRAMMAR_START_UNSPECIFIED, False),
        (pb.GRAMMAR_START_AT_ONCE, False),
        (pb.GRAMMAR_START_AFTER_THINKING, True),
    ],
)
def test_a_grammar_is_read(start: int, is_late: bool) -> None:
    assert request_from_proto(constrained(start=start), WITH_GRAMMARS).grammar == Grammar("h", 2, "a+", is_late)


BAD_GRAMMARS: list[tuple[str, Change]] = [
    ("grammar.handle", lambda m: m.grammar.ClearField("handle")),
    ("grammar.kind", lambda m: m.grammar.ClearField("kind")),
    ("grammar.kind", lambda m: setattr(m.grammar, "kind", 2**32 - 1)),
    ("grammar.start", lambda m: setattr(m.grammar, "start", 9)),
    ("limits.min_tokens", lambda m: setattr(m.limits, "min_tokens", 1)),
    ("limits.ignore_eos", lambda m: setattr(m.limits, "ignore_eos", True)),
]


@pytest.mark.parametrize("bounds", [BOUNDS, WITH_GRAMMARS])
@pytest.mark.parametrize(("name", "change"), BAD_GRAMMARS)
def test_a_grammar_with_what_does_not_go_with_it_is_refused_by_name(
    name: str, change: Change, bounds: RequestBounds
) -> None:
    request = constrained()
    change(request)
    with pytest.raises(InvalidFieldError) as refused:
        request_from_proto(request, bounds)
    assert refused.value.metadata["field"] == name


def test_a_grammar_is_unavailable_where_there_is_no_grammar_service() -> None:
    with pytest.raises(GrammarUnavailableError):
        request_from_proto(constrained(), BOUNDS)


def test_no_field_of_the_request_is_ignored() -> None:
    read = {"request_id", "prompt_token_ids", "sampling", "limits", "logprobs", "prompt_logprobs"}
    read |= {"num_prior_output_tokens", "priority", "grammar"}
    read |= {"tenant_salt"}  # it keys stored prefixes; none are stored
    assert read | {n.split(".")[0] for n in UNSUPPORTED} == set(pb.GenerateRequest.DESCRIPTOR.fields_by_name)
    sampling = {"temperature", "top_k", "top_p", "min_p", "seed", "seed_offset", "logit_bias"}
    sampling |= {"presence_penalty", "frequency_penalty", "repetition_penalty"}
    assert sampling == set(pb.SamplingParams.DESCRIPTOR.fields_by_name)
    limits = {"max_tokens", "min_tokens", "stop_token_ids", "ignore_eos"}
    assert limits == set(pb.Limits.DESCRIPTOR.fields_by_name)
    assert set(pb.Grammar.DESCRIPTOR.fields_by_name) == {"handle", "kind", "source", "start"}


@pytest.mark.parametrize(
    "sampling",
    [pb.SamplingParams(presence_penalty=0), pb.SamplingParams(repetition_penalty=1), pb.SamplingParams(top_k=0)],
)
def test_values_that_change_nothing_are_taken(sampling: pb.SamplingParams) -> None:
    request_from_proto(message(sampling=sampling), BOUNDS)


def test_events_become_messages() -> None:
    step = event_to_proto(TokensCommitted((5,), (TokenLogprobs(-0.5, (5, 6), (-0.5, -1.5)),)))
    assert list(step.step.token_ids) == [5]
    assert list(step.step.logprobs[0].top_token_ids) == [5, 6]
    finished = event_to_proto(
        Finished(
            FinishReason.STOP, 0, 3, 4, 0, queue_seconds=0.5, prefill_seconds=1.0, decode_seconds=2.0, num_rounds=3
        )
    ).finished
    assert finished.HasField("stop_token_id")
    assert (finished.timings.queue_us, finished.timings.num_rounds) == (500_000, 3)
    without = event_to_proto(Finished(FinishReason.LENGTH, None, 3, 4, 0, 0, 0, 0, 0)).finished
    assert not without.HasField("stop_token_id")
