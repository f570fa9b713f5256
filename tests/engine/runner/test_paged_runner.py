"""Blocks as the runner gives them out: the same on every rank, checked after each step, never a matter of bits."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from support.hash_model import HashModel, HashState
from support.planted_fault import Fault, planted
from support.random_plans import RandomPlans, Reply, run_alone, varied_requests
from support.row_invariance import same_bits
from support.thread_transport import run_ranks
from twinspark_engine.kv_cache.block_reservations import BlockCountError
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.model import Model
from twinspark_engine.model.state import DsaState, ModelState
from twinspark_engine.model.weights import load_weights, masked_token_ids
from twinspark_engine.ranks.transport import LocalTransport, Transport
from twinspark_engine.request import Limits, Request, SamplingParams
from twinspark_engine.runner.runner import Runner, RunnerLimits
from twinspark_engine.runner.slot_blocks import CacheCheckError
from twinspark_engine.scheduler.plan import Admission, DecodeWindow, PrefillChunk, StepPlan, StepResult
from twinspark_kernels.paged import FIRST_BLOCK, NULL_BLOCK

NUM_SLOTS = 3
CONTEXT = 1024
MAX_ROWS = 256
LONGEST = 1 << 20
GREEDY = SamplingParams(0, temperature=0)


def build_runner(
    folder: Path,
    transport: Transport,
    num_blocks: int | None = None,
    context: int = CONTEXT,
    latent_dtype: torch.dtype | None = None,
    check: bool = True,
) -> tuple[Runner[ModelState], ModelState]:
    torch.set_num_threads(1)
    config = ModelConfig.from_folder(folder)
    weights = load_weights(folder, config, transport.rank, transport.world_size, torch.float32)
    state = ModelState.allocate(
        config,
        transport.world_size,
        NUM_SLOTS,
        context,
        torch.float32,
        num_blocks=num_blocks,
        latent_dtype=latent_dtype,
    )
    masked = masked_token_ids(folder, config.vocab_size)
    limits = RunnerLimits(NUM_SLOTS, context, MAX_ROWS, frozenset({5}), masked, check)
    return Runner(Model(config, weights, transport), state, transport, limits), state


@pytest.mark.parametrize("latent_dtype", [None, torch.float8_e4m3fn], ids=["fp32", "fp8"])
@pytest.mark.parametrize("world_size", [1, 2])
def test_replies_are_those_alone_in_scattered_blocks_and_ranks_have_the_same_tables(
    tiny_checkpoint: Path, world_size: int, latent_dtype: torch.dtype | None
) -> None:
    # Prompts of one to three blocks, in a pool whose second block is held all the time.
    varied = varied_requests(5, 3, 1400, 600, 10)
    lengths = (300, 530, 40, 260, 513)
    requests = [
        replace(request, prompt_token_ids=(request.prompt_token_ids * length)[:length])
        for request, length in zip(varied, lengths, strict=True)
    ]
    cancelled = [request.request_id for request in requests[::4]]

    def on_rank(transport: Transport) -> tuple[dict[str, Reply], dict[str, Reply], list[list[list[int]]]]:
        runner, state = build_runner(tiny_checkpoint, transport, NUM_SLOTS * 4, latent_dtype=latent_dtype)
        hold_second_block(runner)
        tables: list[list[list[int]]] = []

        def execute(plan: StepPlan) -> StepResult:
            result = runner.execute(plan)
            tables.append(state.table.tolist())
            return result

        together = RandomPlans(execute, NUM_SLOTS - 1, 3, MAX_ROWS, cancelled).run(requests)
        runner.reset()
        alone = {request.request_id: run_alone(runner.execute, request, MAX_ROWS) for request in requests}
        return together, alone, tables

    answers = run_ranks(world_size, on_rank)
    assert all(answer == answers[0] for answer in answers)
    together, alone, tables = answers[0]
    assert together == {name: alone[name] for name in alone if name in together}
    mapped = {tuple(block for block in table if block) for step in tables for table in step[:2]}
    assert any(blocks[:2] == (FIRST_BLOCK, FIRST_BLOCK + 2) for blocks in mapped)


def hold_second_block(runner: Runner[ModelState]) -> None:
    """By a request in the last slot that is never computed."""
    waiting = Request("waiting", (1,), GREEDY, Limits(1))
    last = NUM_SLOTS - 1
    runner.execute(StepPlan(1, 0, admissions=(Admission(0, waiting), Admission(last, waiting))))
    runner.execute(StepPlan(1, 1, cancelled_slots=(0,)))


PAGED = "twinspark_kernels.paged"
LATENT = "twinspark_kernels.latent_attention.reference"
BOOKS = "twinspark_engine.kv_cache.block_reservations"
SLOT_BLOCKS = "twinspark_engine.runner.slot_blocks"
FAULTS = [
    Fault(
        "rows are written by another slot",
        PAGED,
        "blocks = self.table[slots,",
        "blocks = self.table[slots.clamp(max=0),",
    ),
    Fault("chunks are read from the pool's front", PAGED, "self.table[slot, first //", "self.table[0, first //"),
    Fault("all slots have the same blocks", BOOKS, "heapq.heappop(self._free) for", "self._free[0] for"),
    Fault("ended slots keep their blocks", BOOKS, "heapq.heappush(self._free, block)", "None"),
    Fault(
        "a table is that of slot 0", SLOT_BLOCKS, "map_slot(slot, self._reservations", "map_slot(0, self._reservations"
    ),
]
FOUND_BY_REPLIES = FAULTS[:3] + FAULTS[4:]
"""Without the check a lost block shows when the pool is empty, after more requests than these."""


def run_three(folder: Path, check: bool) -> dict[str, Reply]:
    requests = [
        Request(f"r{slot}", tuple(range(slot, slot + length)), GREEDY, Limits(3, ignore_eos=True), num_top_logprobs=2)
        for slot, length in enumerate((270, 260, 70))
    ]
    runner, _ = build_runner(folder, LocalTransport(), NUM_SLOTS * 4, check=check)
    return RandomPlans(runner.execute, NUM_SLOTS, 3, MAX_ROWS, []).run(requests)


@pytest.mark.parametrize("fault", FAULTS[2:], ids=[fault.name.replace(" ", "-") for fault in FAULTS[2:]])
def test_the_check_finds_a_single_line_fault_of_the_books(tiny_checkpoint: Path, fault: Fault) -> None:
    with planted(fault), pytest.raises((CacheCheckError, BlockCountError)):
        run_three(tiny_checkpoint, check=True)


@pytest.mark.parametrize("fault", FOUND_BY_REPLIES, ids=[fault.name.replace(" ", "-") for fault in FOUND_BY_REPLIES])
def test_without_the_check_a_single_line_fault_moves_a_reply(tiny_checkpoint: Path, fault: Fault) -> None:
    expected = run_three(tiny_checkpoint, check=False)
    with planted(fault):
        assert run_three(tiny_checkpoint, check=False) != expected


def test_beside_the_longest_request_a_short_one_has_the_last_physical_block_and_its_reply(
    tiny_checkpoint: Path,
) -> None:
    short = Request("short", tuple(range(3, 90)), GREEDY, Limits(8, ignore_eos=True))
    longest = Request("long", tuple(range(7, 80)), GREEDY, Limits(LONGEST - 73, ignore_eos=True))
    runner, state = build_runner(tiny_checkpoint, LocalTransport(), 4097, LONGEST)
    alone = run_alone(runner.execute, short, MAX_ROWS)
    runner.reset()
    last = FIRST_BLOCK + 4096
    plan = StepPlan(1, 0, admissions=(Admission(0, longest), Admission(2, short)), chunks=(PrefillChunk(0, 0, 73),))
    assert runner.execute(plan).num_free_blocks == 0
    assert state.table[2, 0] == last
    assert state.table[0, -1] == last - 1
    latents = next(layer for layer in state.layers if isinstance(layer, DsaState)).latents.values
    assert len(latents) == last + 1
    before = latents[FIRST_BLOCK].clone()
    found = list(runner.execute(StepPlan(1, 1, chunks=(PrefillChunk(2, 0, 87),))).outputs[0].token_ids)
    while len(found) < 8:
        step = StepPlan(1, 1 + len(found), windows=(DecodeWindow(2),))
        found += runner.execute(step).outputs[0].token_ids
    assert tuple(found) == tuple(alone.token_ids)
    assert latents[last, :87].any(1).all()
    assert same_bits(latents[FIRST_BLOCK], before), "the long request's rows were left alone"


def hash_runner() -> tuple[Runner[HashState], HashState]:
    state = HashState(NUM_SLOTS, CONTEXT)
    limits = RunnerLimits(NUM_SLOTS, CONTEXT, MAX_ROWS, frozenset())
    return Runner(HashModel(LocalTransport(), 96), state, LocalTransport(), limits), state


def admit(slot: int, tokens: int, step: int = 0) -> StepPlan:
    request = Request(f"r{slot}", tuple(range(tokens)), GREEDY, Limits(4, ignore_eos=True))
    chunks = (PrefillChunk(slot, 0, tokens),)
    return StepPlan(1, step, admissions=(Admission(slot, request),), chunks=chunks)


def test_a_slots_blocks_come_with_its_admission_and_go_with_its_end_or_cancel() -> None:
    runner, state = hash_runner()
    runner.reset()
    assert not state.table[:-1].any()
    assert runner.execute(admit(1, 200)).num_free_blocks == 11
    assert state.table[1].tolist() == [2, 0, 0, 0]
    result = runner.execute(StepPlan(1, 1, cancelled_slots=(1,)))
    assert result.num_free_blocks == 12
    assert not state.table[1].any()
    assert runner.execute(admit(0, 256, 2)).num_free_blocks == 10
    for step in range(3):
        result = runner.execute(StepPlan(1, 3 + step, windows=(DecodeWindow(0),)))
    assert result.outputs[0].finish_reason is not None
    assert result.num_free_blocks == 12
    assert not state.table[0].any()


def test_a_request_that_finds_too_few_blocks_is_a_plan_that_contradicts_the_slots() -> None:
    runner, _ = hash_runner()
    for slot in range(NUM_SLOTS):
        request = Request(f"r{slot}", (1, 2), GREEDY, Limits(1000))
        runner.execute(StepPlan(1, slot, admissions=(Admission(slot, request),), chunks=(PrefillChunk(slot, 0, 2),)))
    with pytest.raises(ValueError, match="slot 0 is in use"):
        runner.execute(admit(0, 5, 3))


def test_the_check_finds_a_null_block_that_was_written() -> None:
    runner, state = hash_runner()
    runner.execute(admit(1, 70))
    state.tokens[NULL_BLOCK, 3] = 1
    with pytest.raises(CacheCheckError, match="null block of family 0"):
        runner.execute(StepPlan(1, 1, windows=(DecodeWindow(1),)))


def test_the_check_finds_a_table_that_is_not_the_reserved_one() -> None:
    runner, state = hash_runner()
    runner.execute(admit(1, 70))
    state.table[1, 0] = 9
    with pytest.raises(CacheCheckError, match="table of slot 1"):
        runner.execute(StepPlan(1, 1, windows=(DecodeWindow(1),)))


def test_the_check_finds_padding_rows_that_go_elsewhere() -> None:
    runner, state = hash_runner()
    runner.execute(admit(1, 70))
    state.table[-1, 0] = 5
    with pytest.raises(CacheCheckError, match="trash block"):
        runner.execute(StepPlan(1, 1, windows=(DecodeWindow(1),)))


def test_the_check_finds_a_block_in_two_tables() -> None:
    runner, _ = hash_runner()
    runner.execute(admit(1, 70))
    books = runner._blocks._reservations
    books._free[0] = books.table(1)[0]
    with pytest.raises(BlockCountError):
        runner.execute(admit(0, 70, 1))
