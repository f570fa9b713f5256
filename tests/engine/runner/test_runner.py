"""The runner on a hashing model: replies depend on the request alone, inputs stay in place, stops and refusals hold."""

from dataclasses import replace

import pytest
import torch

from support.hash_model import HashModel, HashState
from support.one_page_sampler import Before, draw_token
from support.random_plans import RandomPlans, Reply, run_alone, varied_requests
from support.thread_transport import run_ranks
from twinspark_engine.model.rows import Rows
from twinspark_engine.ranks.transport import LocalTransport, Transport
from twinspark_engine.request import FinishReason, Limits, Request, SamplingParams
from twinspark_engine.runner.runner import Runner, RunnerLimits
from twinspark_engine.scheduler.plan import Admission, DecodeWindow, PrefillChunk, StepPlan, StepResult
from twinspark_kernels.row_class import RowClass

VOCABULARY = 96
CONTEXT = 512
LIMITS = RunnerLimits(4, CONTEXT, 256, frozenset({7}), masked_token_ids=frozenset(range(90, 1000)))
GREEDY = SamplingParams(0, temperature=0)


def build_runner(transport: Transport | None = None, limits: RunnerLimits = LIMITS) -> Runner[HashState]:
    transport = transport or LocalTransport()
    return Runner(HashModel(transport, VOCABULARY), HashState(limits.num_slots, CONTEXT), transport, limits)


def request_of(length: int, limits: Limits, sampling: SamplingParams = GREEDY) -> Request:
    return Request("one", tuple(range(length)), sampling, limits)


def replies_alone(requests: list[Request]) -> dict[str, Reply]:
    return {request.request_id: run_alone(build_runner().execute, request, 256) for request in requests}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("num_slots", [1, 3, 5, 16])
def test_together_equals_alone_for_any_plan_with_joining_leaving_and_cancelled_requests(
    seed: int, num_slots: int
) -> None:
    requests = varied_requests(24, seed, VOCABULARY, 300, 20)
    cancelled = [request.request_id for request in requests[::5]]
    runner = build_runner(limits=replace(LIMITS, num_slots=num_slots))
    found = RandomPlans(runner.execute, num_slots, seed, 256, cancelled).run(requests)
    expected = replies_alone(requests)
    assert set(expected) - set(found) <= set(cancelled)
    assert found == {name: expected[name] for name in expected if name in found}
    assert {reply.finish_reason for reply in expected.values()} == {FinishReason.STOP, FinishReason.LENGTH}


def test_two_ranks_answer_alike_and_as_one_rank() -> None:
    requests = varied_requests(16, 9, VOCABULARY, 200, 12)

    def on_rank(transport: Transport) -> dict[str, Reply]:
        runner = build_runner(transport)
        return RandomPlans(runner.execute, 4, 5, 256).run(requests)

    first, second = run_ranks(2, on_rank)
    assert first == second
    # The hashing model's logits are the same at any world size; the sum of exp is not added in the same order.
    alone = replies_alone(requests)
    assert {name: reply.token_ids for name, reply in first.items()} == {
        name: reply.token_ids for name, reply in alone.items()
    }


def test_the_reference_run_is_sensitive_to_class_position_and_history() -> None:
    limits = Limits(20, ignore_eos=True)
    base = run_alone(build_runner().execute, request_of(65, limits), 256).token_ids
    longer = run_alone(build_runner().execute, request_of(66, limits), 256).token_ids
    # The 66th token of one is drawn from a decode row, of the other from a prompt row.
    grown = Request("one", (*range(65), base[0]), GREEDY, limits)
    assert longer != base
    assert run_alone(build_runner().execute, grown, 256).token_ids[:19] != base[1:]


@pytest.mark.parametrize(
    "sampling",
    [
        SamplingParams(99, temperature=1.5, top_k=20),
        SamplingParams(99, repetition_penalty=1.3, logit_bias=((11, 2.0),)),
        SamplingParams(99, temperature=0, frequency_penalty=0.4, presence_penalty=0.2),
    ],
)
def test_every_output_token_is_the_draw_on_one_page_at_its_position_and_after_its_history(
    sampling: SamplingParams,
) -> None:
    limits = Limits(40, frozenset(range(8, 40)), ignore_eos=True, min_tokens=12)
    request = replace(request_of(70, limits, sampling), num_prior_output_tokens=4)
    reply = run_alone(build_runner().execute, request, 256)
    assert len(reply.token_ids) > 8
    model, state = HashModel(LocalTransport(), VOCABULARY), HashState(1, CONTEXT)
    state.reset_slot(0)
    hidden = model.forward(Rows.segment(RowClass.PROMPT, torch.arange(70), 0, 0), state)[-1:]
    before = Before(range(70), [66, 67, 68, 69], LIMITS.eos_token_ids | limits.stop_token_ids, 12)
    for position, token_id in enumerate(reply.token_ids, start=70):
        page = model.logits(hidden, RowClass.DECODE)[0].tolist()
        assert draw_token(page, sampling, position, LIMITS.masked_token_ids, before) == token_id
        hidden = model.forward(Rows.segment(RowClass.DECODE, torch.tensor([token_id]), 0, position), state)
        before = replace(before, output=[*before.output, token_id])


def test_min_tokens_delays_the_end_which_may_then_come_at_once() -> None:
    limits = Limits(40, frozenset(range(8, 90)), min_tokens=5)
    reply = run_alone(build_runner().execute, request_of(5, limits), 256)
    # Only 0 to 6 are left until then; nearly every other id ends the output.
    assert all(token_id < 7 for token_id in reply.token_ids[:5])
    assert (reply.finish_reason, len(reply.token_ids)) == (FinishReason.STOP, 6)


def test_masked_ids_are_never_drawn() -> None:
    for seed in range(20):
        sampling = SamplingParams(seed, temperature=2)
        reply = run_alone(build_runner().execute, request_of(3, Limits(30, ignore_eos=True), sampling), 256)
        assert max(reply.token_ids) < 90


def test_an_end_token_a_stop_id_max_tokens_and_the_context_end_the_output() -> None:
    free = run_alone(build_runner().execute, request_of(5, Limits(40, ignore_eos=True)), 256)
    assert (len(free.token_ids), free.finish_reason, free.stop_token_id) == (40, FinishReason.LENGTH, None)
    third = free.token_ids[2]
    assert third not in free.token_ids[:2]
    stopped = run_alone(build_runner().execute, request_of(5, Limits(40, frozenset({third}), True)), 256)
    assert (stopped.token_ids, stopped.finish_reason, stopped.stop_token_id) == (
        free.token_ids[:3],
        FinishReason.STOP,
        third,
    )
    end = replace(LIMITS, eos_token_ids=frozenset({third}))
    ended = run_alone(build_runner(limits=end).execute, request_of(5, Limits(40)), 256)
    assert ended == stopped
    ignored = run_alone(build_runner(limits=end).execute, request_of(5, Limits(40, ignore_eos=True)), 256)
    assert ignored == free
    full = run_alone(build_runner(limits=replace(LIMITS, context_tokens=8)).execute, request_of(5, Limits(40)), 256)
    assert (full.token_ids, full.finish_reason) == (free.token_ids[:3], FinishReason.LENGTH)


def test_max_tokens_zero_computes_the_prompt_only() -> None:
    request = replace(request_of(70, Limits(0)), num_prompt_top_logprobs=1)
    reply = run_alone(build_runner().execute, request, 64)
    assert (reply.token_ids, reply.finish_reason, len(reply.prompt_logprobs)) == ([], FinishReason.LENGTH, 69)


def decode_steps(runner: Runner[HashState], count: int, first_step: int) -> list[StepResult]:
    windows = tuple(DecodeWindow(slot) for slot in (2, 0, 1))
    return [runner.execute(StepPlan(1, first_step + step, windows=windows)) for step in range(count)]


def test_inputs_stay_in_place_over_100_decode_steps() -> None:
    runner = build_runner()
    request = request_of(65, Limits(300, ignore_eos=True), SamplingParams(4, top_p=0.9, presence_penalty=0.5))
    admissions = tuple(Admission(slot, request) for slot in (0, 1, 2))
    chunks = tuple(PrefillChunk(slot, 0, 65) for slot in (0, 1, 2))
    runner.execute(StepPlan(1, 0, admissions=admissions, chunks=chunks))
    before = runner.data_pointers()
    results = decode_steps(runner, 100, 1)
    assert runner.data_pointers() == before
    assert [[output.slot for output in result.outputs] for result in results] == [[2, 0, 1]] * 100
    assert all(len({output.token_ids for output in result.outputs}) == 1 for result in results)


def test_a_reset_empties_the_slots() -> None:
    runner = build_runner()
    plan = StepPlan(1, 0, admissions=(Admission(0, request_of(5, Limits(9))),), chunks=(PrefillChunk(0, 0, 5),))
    first = runner.execute(plan)
    runner.reset()
    assert runner.execute(plan) == first


@pytest.mark.parametrize(
    ("plan", "problem"),
    [
        (StepPlan(1, 1, admissions=(Admission(0, request_of(5, Limits(9))),)), "slot 0 is in use"),
        (StepPlan(1, 1, admissions=(Admission(1, request_of(99, Limits(9)), 64),)), "no stored prefixes"),
        (StepPlan(1, 1, chunks=(PrefillChunk(0, 0, 64),)), "does not follow 64"),
        (StepPlan(1, 1, chunks=(PrefillChunk(0, 64, 64),)), "does not follow 64"),
        (StepPlan(1, 1, windows=(DecodeWindow(0),)), "before its first token"),
    ],
)
def test_a_plan_that_contradicts_the_slots_is_refused(plan: StepPlan, problem: str) -> None:
    runner = build_runner()
    admission = Admission(0, request_of(70, Limits(9)))
    runner.execute(StepPlan(1, 0, admissions=(admission,), chunks=(PrefillChunk(0, 0, 64),)))
    with pytest.raises(ValueError, match=problem):
        runner.execute(plan)


def test_more_prompt_rows_than_allocated_are_refused() -> None:
    request = request_of(300, Limits(1))
    plan = StepPlan(1, 0, admissions=(Admission(0, request),), chunks=(PrefillChunk(0, 0, 300),))
    with pytest.raises(ValueError, match="300 rows exceed the 256"):
        build_runner().execute(plan)
