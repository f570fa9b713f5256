"""The runner on the real model with a tiny random checkpoint, on one and two ranks."""

import gc
from pathlib import Path

import pytest
import torch
from torch import Tensor

from support.random_plans import RandomPlans, Reply, run_alone, varied_requests
from support.thread_transport import run_ranks
from twinspark_engine.model.config import ModelConfig
from twinspark_engine.model.model import Model
from twinspark_engine.model.state import ModelState
from twinspark_engine.model.weights import load_weights, masked_token_ids
from twinspark_engine.ranks.transport import LocalTransport, Transport
from twinspark_engine.request import Limits, Request, SamplingParams
from twinspark_engine.runner.runner import Runner, RunnerLimits
from twinspark_engine.scheduler.plan import Admission, DecodeWindow, PrefillChunk, StepPlan

CONTEXT = 512
MAX_ROWS = 256
NUM_SLOTS = 3


def build_runner(folder: Path, transport: Transport) -> tuple[Runner[ModelState], ModelState]:
    torch.set_num_threads(1)
    config = ModelConfig.from_folder(folder)
    weights = load_weights(folder, config, transport.rank, transport.world_size, torch.float32)
    state = ModelState.allocate(config, transport.world_size, NUM_SLOTS, CONTEXT, torch.float32)
    limits = RunnerLimits(NUM_SLOTS, CONTEXT, MAX_ROWS, frozenset({5}), masked_token_ids(folder, config.vocab_size))
    return Runner(Model(config, weights, transport), state, transport, limits), state


@pytest.mark.parametrize("world_size", [1, 2])
@pytest.mark.parametrize("seed", [1, 2])
def test_together_equals_alone_for_any_chunks_groups_and_cancels(
    tiny_checkpoint: Path, world_size: int, seed: int
) -> None:
    # Prompts on both sides of the dense limit, which is 67 tokens here.
    requests = varied_requests(9, seed, 1400, 200, 10)
    cancelled = [request.request_id for request in requests[::4]]

    def on_rank(transport: Transport) -> tuple[dict[str, Reply], dict[str, Reply]]:
        runner, _ = build_runner(tiny_checkpoint, transport)
        together = RandomPlans(runner.execute, NUM_SLOTS, seed, MAX_ROWS, cancelled).run(requests)
        runner.reset()
        alone = {request.request_id: run_alone(runner.execute, request, MAX_ROWS) for request in requests}
        return together, alone

    answers = run_ranks(world_size, on_rank)
    assert all(answer == answers[0] for answer in answers)
    together, alone = answers[0]
    assert set(alone) - set(together) <= set(cancelled)
    assert together == {name: alone[name] for name in alone if name in together}


def live_tensors() -> list[tuple[int, int]]:
    gc.collect()
    tensors = [entry for entry in gc.get_objects() if isinstance(entry, Tensor)]
    return sorted((tensor.data_ptr(), tensor.nbytes) for tensor in tensors)


def test_100_decode_steps_keep_every_buffer_in_place_and_leave_nothing_behind(tiny_checkpoint: Path) -> None:
    runner, state = build_runner(tiny_checkpoint, LocalTransport())
    sampling = SamplingParams(4, temperature=0.8, top_p=0.9, frequency_penalty=0.1, logit_bias=((7, 1.0),))
    request = Request("one", tuple(range(65)), sampling, Limits(300, ignore_eos=True), num_top_logprobs=3)
    slots = range(NUM_SLOTS)
    first = StepPlan(
        1,
        0,
        admissions=tuple(Admission(slot, request) for slot in slots),
        chunks=tuple(PrefillChunk(slot, 0, 65) for slot in slots),
    )
    windows = tuple(DecodeWindow(slot) for slot in slots)
    runner.execute(first)
    runner.execute(StepPlan(1, 1, windows=windows))
    before = runner.data_pointers(), [tensor.data_ptr() for tensor in state.tensors()], live_tensors()
    for step in range(100):
        outputs = runner.execute(StepPlan(1, 2 + step, windows=windows)).outputs
        assert len({output.token_ids for output in outputs}) == 1
    assert (runner.data_pointers(), [tensor.data_ptr() for tensor in state.tensors()], live_tensors()) == before
