"""Row invariance where attention walks several chunks of 512 keys, and the indexer several chunks of 512 pools."""

import pytest
import torch
from torch import Tensor

from support.forward_case import ForwardCase, forward_case, join_ranks, on_ranks
from support.forward_steps import Segment, Step, prompt_steps, run_steps, window_steps
from support.hf_models import HfShape
from twinspark_engine.model.model import Model
from twinspark_engine.model.state import ModelState
from twinspark_kernels.row_class import RowClass

SHAPES = {
    "dense-and-sparse-past-512-keys": HfShape("kD", hidden=52, index_topk=640),
    "pools-past-512": HfShape("D", hidden=40, pool=1, index_topk=24),
}
LENGTH, OTHER = 900, 450
FIRST_WINDOW = 820

pytestmark = pytest.mark.slow


@pytest.fixture(params=list(SHAPES.values()), ids=list(SHAPES))
def case(request: pytest.FixtureRequest) -> ForwardCase:
    return forward_case(request.param)


def run(case: ForwardCase, world_size: int, steps: list[Step], slots: tuple[int, int] = (0, 1)) -> Tensor:
    """Hidden rows and logits of sequence 0; sequence 1 is its company."""
    sequences = [case.prompt(LENGTH), case.prompt(OTHER)]

    def work(model: Model, state: ModelState) -> Tensor:
        return run_steps(model, state, sequences, slots, steps)[0]

    return torch.cat(join_ranks(case, on_ranks(case, world_size, work, LENGTH)), dim=1)


@pytest.mark.parametrize("world_size", [1, 2])
def test_chunks_windows_and_company_do_not_change_rows_past_512_keys(case: ForwardCase, world_size: int) -> None:
    ones = window_steps(FIRST_WINDOW, [1] * 24)
    expected = run(case, world_size, prompt_steps(FIRST_WINDOW) + ones)
    windows = window_steps(FIRST_WINDOW, [3, 16, 5])
    assert torch.equal(run(case, world_size, prompt_steps(FIRST_WINDOW, 192) + windows), expected)
    company = [
        Step(RowClass.PROMPT, (Segment(1, 0, 384), Segment(0, 0, 448))),
        Step(RowClass.PROMPT, (Segment(0, 448, FIRST_WINDOW), Segment(1, 384, OTHER - 10)), padding=3),
        Step(RowClass.DECODE, (Segment(1, OTHER - 10, OTHER - 3), Segment(0, FIRST_WINDOW, FIRST_WINDOW + 16))),
        Step(RowClass.DECODE, (Segment(0, FIRST_WINDOW + 16, FIRST_WINDOW + 24), Segment(1, OTHER - 3, OTHER))),
    ]
    assert torch.equal(run(case, world_size, company, slots=(3, 2)), expected)


@pytest.mark.parametrize("start", [505, 630])
def test_windows_that_cross_a_chunk_or_the_dense_limit_keep_their_bits(case: ForwardCase, start: int) -> None:
    expected = run(case, 1, prompt_steps(start) + window_steps(start, [1] * 32))
    assert torch.equal(run(case, 1, prompt_steps(start) + window_steps(start, [16, 16])), expected)
    assert torch.equal(run(case, 1, prompt_steps(start, 128) + window_steps(start, [7, 11, 14])), expected)
