"""Constrained requests in the runner: masked rows, failures that all ranks share, and streams that are closed."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from support.hash_model import HashModel, HashState
from support.one_page_sampler import Before, draw_token
from support.random_plans import RandomPlans, Reply, run_alone, varied_requests
from support.scripted_masks import ScriptedMasks, allowed_ids
from support.thread_transport import run_ranks
from twinspark_engine.masks.source import MaskAccess
from twinspark_engine.model.rows import Rows
from twinspark_engine.ranks.transport import LocalTransport, Transport
from twinspark_engine.request import ConstraintFailure, FinishReason, Grammar, Limits, Request, SamplingParams
from twinspark_engine.runner.runner import Runner, RunnerLimits
from twinspark_engine.scheduler.plan import Admission, DecodeWindow, PrefillChunk, SlotOutput, StepPlan
from twinspark_kernels.row_class import RowClass

VOCABULARY = 96
"""Two ranks have 48 columns each: the second one's begin inside a word."""
CONTEXT = 512
LIMITS = RunnerLimits(4, CONTEXT, 256, frozenset({7}), masked_token_ids=frozenset(range(90, 1000)))
LOST = ConstraintFailure.LOST


def build_runner(
    masks: ScriptedMasks, transport: Transport | None = None, limits: RunnerLimits = LIMITS
) -> Runner[HashState]:
    transport = transport or LocalTransport()
    model, state = HashModel(transport, VOCABULARY), HashState(limits.num_slots, CONTEXT)
    return Runner(model, state, transport, limits, MaskAccess(masks, 1.0))


def constrain(request: Request, source: str) -> Request:
    limits = replace(request.limits, ignore_eos=False, min_tokens=0)
    return replace(request, limits=limits, grammar=Grammar("handle", 2, source))


def mixed_requests(count: int, seed: int) -> list[Request]:
    """Every other one is constrained, in all kinds of sampling."""
    requests = varied_requests(count, seed, VOCABULARY, 200, 20)
    return [constrain(request, f"g{i}") if i % 2 else request for i, request in enumerate(requests)]


def replies_alone(requests: Sequence[Request]) -> dict[str, Reply]:
    return {
        request.request_id: run_alone(build_runner(ScriptedMasks(VOCABULARY)).execute, request, 256)
        for request in requests
    }


@pytest.mark.parametrize(
    "sampling",
    [
        SamplingParams(99, temperature=0),
        SamplingParams(99),
        SamplingParams(99, temperature=1.5, top_k=20),
        SamplingParams(99, top_p=0.9, min_p=0.02),
        SamplingParams(99, repetition_penalty=1.3, presence_penalty=0.5, logit_bias=((11, 2.0),)),
    ],
)
@pytest.mark.parametrize("world_size", [1, 2])
def test_every_token_is_the_draw_on_one_page_of_what_the_masks_leave(sampling: SamplingParams, world_size: int) -> None:
    request = Request("one", tuple(range(70)), sampling, Limits(40, frozenset({3})), grammar=Grammar("h", 2, "g"))

    def on_rank(transport: Transport) -> Reply:
        return run_alone(build_runner(ScriptedMasks(VOCABULARY), transport).execute, request, 256)

    replies = run_ranks(world_size, on_rank)
    model, state, output = HashModel(LocalTransport(), VOCABULARY), HashState(1, CONTEXT), list[int]()
    state.reset_slot(0)
    hidden = model.forward(Rows.segment(RowClass.PROMPT, torch.arange(70), 0, 0), state)[-1:]
    assert all(reply == replies[0] for reply in replies)
    assert len(replies[0].token_ids) > 3
    for position, token_id in enumerate(replies[0].token_ids, start=70):
        masked = set(range(VOCABULARY)) - allowed_ids("g", output, [3, 7], VOCABULARY)
        page = model.logits(hidden, RowClass.DECODE)[0].tolist()
        before = Before(range(70), output, frozenset({3, 7}), 0)
        assert draw_token(page, sampling, position, frozenset(masked) | LIMITS.masked_token_ids, before) == token_id
        hidden = model.forward(Rows.segment(RowClass.DECODE, torch.tensor([token_id]), 0, position), state)
        output.append(token_id)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("world_size", [1, 2])
def test_together_equals_alone_with_and_without_constraints(seed: int, world_size: int) -> None:
    requests = mixed_requests(24, seed)
    cancelled = [request.request_id for request in requests[::5]]

    def on_rank(transport: Transport) -> tuple[dict[str, Reply], int]:
        masks = ScriptedMasks(VOCABULARY)
        runner = build_runner(masks, transport)
        replies = RandomPlans(runner.execute, 4, seed, 256, cancelled).run(requests)
        return replies, len(masks.open_streams)

    results = run_ranks(world_size, on_rank)
    assert all(result == results[0] for result in results)
    found, num_open = results[0]
    assert num_open == 0
    expected = replies_alone(requests)
    constrained = {request.request_id for request in requests if request.grammar is not None}
    assert {expected[name].finish_reason for name in constrained} == {FinishReason.STOP, FinishReason.LENGTH}
    assert {name: reply.token_ids for name, reply in found.items()} == {
        name: expected[name].token_ids for name in found
    }
    if world_size == 1:
        assert found == {name: expected[name] for name in found}


def test_masks_leave_log_probabilities_alone() -> None:
    request = replace(
        Request("one", (1, 2, 3), SamplingParams(5), Limits(1), num_top_logprobs=5), grammar=Grammar("h", 2, "g")
    )
    # No id is masked in every row: what is drawn from is then the model's own tensor, but for the grammar.
    limits = replace(LIMITS, masked_token_ids=frozenset())
    masked = run_alone(build_runner(ScriptedMasks(VOCABULARY), limits=limits).execute, request, 256)
    free = run_alone(
        build_runner(ScriptedMasks(VOCABULARY), limits=limits).execute, replace(request, grammar=None), 256
    )
    assert masked.token_ids != free.token_ids
    assert masked.logprobs[0].top_token_ids == free.logprobs[0].top_token_ids
    assert masked.logprobs[0].top_logprobs == free.logprobs[0].top_logprobs
    assert masked.logprobs[0].top_token_ids[0] not in allowed_ids("g", [], [7], VOCABULARY), "the case shows nothing"


@dataclass(frozen=True)
class Four:
    """What four slots were answered, and the step in which a slot failed."""

    replies: Mapping[int, list[SlotOutput]]
    failed_in: Mapping[int, tuple[int, ConstraintFailure]]
    num_open: int


def run_four(transport: Transport, refusals: Mapping[tuple[str, int], ConstraintFailure], num_steps: int = 12) -> Four:
    """Slots 0 and 2 are constrained; all decode together, admitted one after the other."""
    masks = ScriptedMasks(VOCABULARY, refusals)
    runner = build_runner(masks, transport)
    replies: dict[int, list[SlotOutput]] = {slot: [] for slot in range(4)}
    failed: dict[int, tuple[int, ConstraintFailure]] = {}
    for step in range(num_steps):
        admissions: tuple[Admission, ...] = ()
        chunks: tuple[PrefillChunk, ...] = ()
        if step < 4:
            grammar = None if step % 2 else Grammar("h", 2, f"g{step}")
            request = Request(f"r{step}", tuple(range(step + 1)), SamplingParams(step), Limits(50), grammar=grammar)
            admissions, chunks = (Admission(step, request),), (PrefillChunk(step, 0, step + 1),)
        windows = tuple(DecodeWindow(slot) for slot in range(min(step, 4)))
        for output in runner.execute(StepPlan(1, step, (), admissions, chunks, windows)).outputs:
            replies[output.slot].append(output)
            if output.failure is not None:
                failed[output.slot] = (step, output.failure)
    return Four(replies, failed, len(masks.open_streams))


@pytest.mark.parametrize("window", range(6))
@pytest.mark.parametrize(("world_size", "ranks"), [(1, {0}), (2, {0}), (2, {1}), (2, {0, 1})])
def test_a_missing_mask_on_any_rank_ends_only_its_request_on_all_in_that_step(
    window: int, world_size: int, ranks: set[int]
) -> None:
    undisturbed = run_ranks(world_size, lambda transport: run_four(transport, {}))[0]

    def on_rank(transport: Transport) -> Four:
        return run_four(transport, {("r2", window): LOST} if transport.rank in ranks else {})

    results = run_ranks(world_size, on_rank)
    assert all(result == results[0] for result in results), "ranks disagree"
    assert not undisturbed.failed_in
    failed, reached = results[0].failed_in, len(undisturbed.replies[2])
    if window >= reached:
        assert not failed
        return
    assert failed == {2: (2 + window, LOST)}
    assert results[0].replies[2][:-1] == undisturbed.replies[2][:window]
    assert results[0].replies[2][-1] == SlotOutput(2, failure=LOST)
    for slot in (0, 1, 3):
        assert results[0].replies[slot] == undisturbed.replies[slot]
    assert results[0].num_open == undisturbed.num_open - 1


def test_the_same_cases_end_in_streams_that_last() -> None:
    """The case above needs a request that runs through all of its windows."""
    assert len(run_four(LocalTransport(), {}).replies[2]) > 5


def test_of_different_failures_the_graver_counts_on_both_ranks() -> None:
    def on_rank(transport: Transport) -> Four:
        failure = (ConstraintFailure.SLOW, ConstraintFailure.REFUSED)[transport.rank]
        return run_four(transport, {("r0", 1): failure})

    first, second = run_ranks(2, on_rank)
    assert first.failed_in == second.failed_in == {0: (1, ConstraintFailure.REFUSED)}


def test_a_failure_frees_the_slot_for_the_next_request() -> None:
    masks = ScriptedMasks(VOCABULARY, {("r", 0): LOST})
    runner = build_runner(masks)
    request = Request("r", (1, 2, 3), SamplingParams(1), Limits(5), grammar=Grammar("h", 2, "g"))
    plan = StepPlan(1, 0, admissions=(Admission(1, request),), chunks=(PrefillChunk(1, 0, 3),))
    assert runner.execute(plan).outputs == (SlotOutput(1, failure=LOST),)
    assert (runner.num_used_blocks, masks.open_streams) == (0, [])
    masks.refusals = {}
    assert runner.execute(plan).outputs[0].token_ids


def test_a_mask_that_leaves_nothing_to_draw_ends_the_request() -> None:
    never = replace(LIMITS, masked_token_ids=frozenset(range(VOCABULARY)) - {7})
    runner = build_runner(ScriptedMasks(VOCABULARY), limits=never)
    request = Request("r", (1, 2, 3), SamplingParams(1), Limits(5), grammar=Grammar("h", 2, "g"))
    assert 7 not in allowed_ids("g", [], [7], VOCABULARY)
    plan = StepPlan(1, 0, admissions=(Admission(1, request),), chunks=(PrefillChunk(1, 0, 3),))
    assert runner.execute(plan).outputs == (SlotOutput(1, failure=ConstraintFailure.STUCK),)


@pytest.mark.parametrize("end", ["cancel", "reset", "finish"])
def test_a_stream_ends_with_its_request(end: str) -> None:
    masks = ScriptedMasks(VOCABULARY)
    runner = build_runner(masks)
    request = Request(
        "r", (1, 2, 3), SamplingParams(1), Limits(1 if end == "finish" else 9), grammar=Grammar("h", 2, "g")
    )
    result = runner.execute(StepPlan(1, 0, admissions=(Admission(1, request),), chunks=(PrefillChunk(1, 0, 3),)))
    assert len(masks.open_streams) == (0 if end == "finish" else 1)
    assert result.num_masked_rows == 1
    if end == "cancel":
        runner.execute(StepPlan(1, 1, cancelled_slots=(1,)))
    elif end == "reset":
        runner.reset()
    assert masks.open_streams == []


class CountingTransport(LocalTransport):
    """Counts exchanges."""

    num_gathers = 0

    def gather(self, x: Tensor) -> Tensor:
        self.num_gathers += 1
        return super().gather(x)


@pytest.mark.parametrize("is_constrained", [False, True])
def test_what_failed_travels_with_the_candidates_and_not_in_an_exchange_of_its_own(is_constrained: bool) -> None:
    transport = CountingTransport()
    runner = build_runner(ScriptedMasks(VOCABULARY), transport)
    grammar = Grammar("h", 2, "g") if is_constrained else None
    constrained = Request("a", (1, 2, 3), SamplingParams(1, temperature=0), Limits(50), grammar=grammar)
    free = replace(constrained, request_id="b", grammar=None)
    admissions = (Admission(0, constrained), Admission(1, free))
    runner.execute(StepPlan(1, 0, (), admissions, (PrefillChunk(0, 0, 3), PrefillChunk(1, 0, 3))))
    for windows in ((1,), (0, 1)):
        before = transport.num_gathers
        runner.execute(StepPlan(1, 1, windows=tuple(DecodeWindow(slot) for slot in windows)))
        assert transport.num_gathers - before == 2, "one in the forward, one for the candidates"


def test_inputs_stay_in_place_with_masks() -> None:
    runner = build_runner(ScriptedMasks(VOCABULARY))
    before = runner.data_pointers()
    RandomPlans(runner.execute, 4, random.Random(1).randrange(9), 256).run(mixed_requests(12, 1))
    assert runner.data_pointers() == before
