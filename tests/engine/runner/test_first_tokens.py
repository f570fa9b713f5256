"""First tokens leave at the end of their chunk: before the slots that decode run, and with the same bits."""

from collections import deque
from dataclasses import replace

import pytest
from torch import Tensor

from support.hash_model import HashModel, HashState
from support.random_plans import Reply, run_alone, varied_requests
from support.thread_transport import run_ranks
from twinspark_engine.model.rows import Rows
from twinspark_engine.ranks.transport import LocalTransport, Transport
from twinspark_engine.request import Limits, Request, SamplingParams
from twinspark_engine.runner.runner import Runner, RunnerLimits
from twinspark_engine.scheduler.limits import SchedulerLimits
from twinspark_engine.scheduler.plan import Admission, DecodeWindow, PrefillChunk, SlotOutput, StepPlan
from twinspark_engine.scheduler.scheduler import Scheduler
from twinspark_kernels.row_class import RowClass

VOCABULARY, CONTEXT = 96, 512
LIMITS = RunnerLimits(4, CONTEXT, 256, frozenset({7}))


class LoggedModel(HashModel):
    """Notes the order of forwards."""

    def __init__(self, transport: Transport, log: list[str]) -> None:
        super().__init__(transport, VOCABULARY)
        self._log = log

    def forward(self, rows: Rows, state: HashState) -> Tensor:
        self._log.append("prompt" if rows.row_class is RowClass.PROMPT else "decode")
        return super().forward(rows, state)


def request_of(name: str, length: int, max_tokens: int = 9) -> Request:
    prompt = tuple((i * 5 + length) % VOCABULARY for i in range(length))
    return Request(name, prompt, SamplingParams(3), Limits(max_tokens, ignore_eos=True))


def admit(step: int, slot: int, request: Request, count: int, *windows: int) -> StepPlan:
    return StepPlan(
        1,
        step,
        admissions=(Admission(slot, request),),
        chunks=(PrefillChunk(slot, 0, count),),
        windows=tuple(DecodeWindow(window) for window in windows),
    )


@pytest.mark.parametrize("max_tokens", [1, 9])
def test_a_first_token_is_told_before_the_decode_forward_and_is_not_in_the_result(max_tokens: int) -> None:
    log: list[str] = []
    told: list[SlotOutput] = []
    runner = Runner(LoggedModel(LocalTransport(), log), HashState(4, CONTEXT), LocalTransport(), LIMITS)

    def on_first(outputs: tuple[SlotOutput, ...]) -> None:
        log.append("told")
        told.extend(outputs)

    decoder, request = request_of("decoder", 5), request_of("new", 70, max_tokens)
    runner.execute(admit(0, 0, decoder, 5), on_first)
    result = runner.execute(admit(1, 2, request, 70, 0), on_first)
    assert log == ["prompt", "prompt", "told", "decode"]
    assert [output.slot for output in result.outputs] == [0]
    assert [output.slot for output in told] == [2]
    fresh = Runner(HashModel(LocalTransport(), VOCABULARY), HashState(4, CONTEXT), LocalTransport(), LIMITS)
    alone = run_alone(fresh.execute, request, 256)
    assert told[0].token_ids == tuple(alone.token_ids[:1])
    assert (told[0].finish_reason is None) == (max_tokens == 9)


def test_a_chunk_without_a_first_token_tells_nothing() -> None:
    told: list[tuple[SlotOutput, ...]] = []
    runner = Runner(HashModel(LocalTransport(), VOCABULARY), HashState(4, CONTEXT), LocalTransport(), LIMITS)
    runner.execute(admit(0, 0, request_of("decoder", 5), 5), told.append)
    runner.execute(admit(1, 1, request_of("new", 70), 64, 0), told.append)
    assert told == []


def test_a_slot_with_a_chunk_and_a_window_in_one_step_is_refused() -> None:
    runner = Runner(HashModel(LocalTransport(), VOCABULARY), HashState(4, CONTEXT), LocalTransport(), LIMITS)
    with pytest.raises(ValueError, match="before its first token"):
        runner.execute(admit(0, 0, request_of("a", 5), 5, 0))


def replies_of(transport: Transport, requests: list[Request], limits: SchedulerLimits) -> dict[str, Reply]:
    """Replies of a scheduler whose first tokens are told early on rank 0; the other rank follows its plans."""
    runner = Runner(HashModel(transport, VOCABULARY), HashState(limits.num_slots, CONTEXT), transport, LIMITS)
    scheduler = Scheduler(limits)
    waiting, owners = deque(requests), dict[int, str]()
    replies = {request.request_id: Reply() for request in requests}
    num_steps = 0

    def add(outputs: tuple[SlotOutput, ...]) -> None:
        for output in outputs:
            replies[owners[output.slot]].add(output)

    def on_first(outputs: tuple[SlotOutput, ...]) -> None:
        scheduler.apply_first(outputs, 0.0)
        add(outputs)

    while waiting or scheduler.has_work:
        for _ in range(2 if num_steps % 5 == 0 and waiting else 0):
            if waiting:
                scheduler.submit(waiting.popleft(), 0.0)
        plan = scheduler.plan(0.0)
        num_steps += 1
        for admission in plan.admissions:
            owners[admission.slot] = admission.request.request_id
            replies[admission.request.request_id] = Reply()
        if plan.is_empty:
            continue
        result = runner.execute(plan, on_first if transport.rank == 0 else None)
        scheduler.apply(result, 0.0)
        add(result.outputs)
    return replies


def test_replies_by_the_scheduler_equal_those_alone_on_one_rank_and_two() -> None:
    requests = varied_requests(24, 3, VOCABULARY, 300, 20)
    requests = [replace(request, is_background=i % 3 == 0) for i, request in enumerate(requests)]
    limits = SchedulerLimits(4, CONTEXT, 64, 256, 64, short_prompt_tokens=64)

    def run(transport: Transport) -> dict[str, Reply]:
        # Without a share of time both ranks' schedulers make the same plans, as if rank 0 had sent them.
        return replies_of(transport, requests, limits)

    alone = {}
    for request in requests:
        model = HashModel(LocalTransport(), VOCABULARY)
        runner = Runner(model, HashState(4, CONTEXT), LocalTransport(), LIMITS)
        alone[request.request_id] = run_alone(runner.execute, request, 256)
    assert replies_of(LocalTransport(), requests, replace(limits, decode_share=0.5)) == alone
    first, second = run_ranks(2, run)
    assert {name: reply.token_ids for name, reply in first.items()} == {
        name: reply.token_ids for name, reply in alone.items()
    }
    assert first == second
