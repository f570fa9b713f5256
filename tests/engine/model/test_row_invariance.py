"""A row's bits in a whole forward do not depend on what runs beside it: equality, not closeness."""

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
    "pool-4": HfShape("kDKd", hidden=52, intermediate=88, expert_width=44, vocab=100),
    "pool-16": HfShape("DK", hidden=100, intermediate=70, expert_width=30, vocab=110, pool=16, index_topk=64, heads=4),
}
CONTEXT = 320
LENGTHS = (200, 70, 131)
PROMPT, DECODE = RowClass.PROMPT, RowClass.DECODE


@pytest.fixture(params=[1, 2])
def world_size(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(params=list(SHAPES.values()), ids=list(SHAPES))
def case(request: pytest.FixtureRequest) -> ForwardCase:
    return forward_case(request.param)


def run(
    case: ForwardCase,
    world_size: int,
    steps: list[Step],
    slots: tuple[int, ...] = (0, 1, 2),
    dtype: torch.dtype = torch.float32,
) -> list[Tensor]:
    """Hidden rows and logits of each sequence."""
    sequences = [case.prompt(length) for length in LENGTHS]

    def work(model: Model, state: ModelState) -> list[Tensor]:
        return run_steps(model, state, sequences, slots, steps)

    by_rank = on_ranks(case, world_size, work, CONTEXT, dtype=dtype)
    joined = []
    for index in range(len(sequences)):
        parts = [result[index] for result in by_rank]
        joined.append(torch.cat(join_ranks(case, parts), dim=1) if parts[0].numel() else torch.empty(0))
    return joined


def segments(*parts: tuple[int, int, int]) -> tuple[Segment, ...]:
    return tuple(Segment(*part) for part in parts)


def assert_equal(found: list[Tensor], expected: list[Tensor]) -> None:
    for index, (ours, other) in enumerate(zip(found, expected, strict=True)):
        assert torch.equal(ours, other), f"sequence {index}: {(ours != other).any(dim=1).sum()} rows differ"


def alone(case: ForwardCase, world_size: int, stops: tuple[int, ...] = LENGTHS) -> list[Tensor]:
    """Each prompt by itself, whole, up to its stop."""
    return [
        run(case, world_size, [Step(PROMPT, segments((index, 0, stop)))])[index] for index, stop in enumerate(stops)
    ]


def test_prompts_in_one_forward_keep_the_bits_they_have_alone(case: ForwardCase, world_size: int) -> None:
    together = [Step(PROMPT, segments((1, 0, 70), (0, 0, 200), (2, 0, 131)))]
    assert_equal(run(case, world_size, together, slots=(3, 0, 1)), alone(case, world_size))


@pytest.mark.parametrize("chunk", [64, 128])
def test_any_chunking_gives_the_same_bits(case: ForwardCase, world_size: int, chunk: int) -> None:
    steps = [step for index, length in enumerate(LENGTHS) for step in prompt_steps(length, chunk, index)]
    assert_equal(run(case, world_size, steps), alone(case, world_size))


def test_interleaved_chunks_with_padding_give_the_same_bits(case: ForwardCase, world_size: int) -> None:
    steps = [
        Step(PROMPT, segments((0, 0, 64), (1, 0, 64)), padding=3),
        Step(PROMPT, segments((2, 0, 128), (0, 64, 192)), padding=1),
        Step(PROMPT, segments((1, 64, 70), (0, 192, 200), (2, 128, 131)), padding=17),
    ]
    assert_equal(run(case, world_size, steps, slots=(2, 3, 0)), alone(case, world_size))


WINDOWS = [[2, 3, 4, 5, 6, 7, 8, 5], [16, 16, 8], [15, 9, 10, 6], [11, 12, 13, 4], [14, 16, 10]]


@pytest.mark.parametrize("windows", WINDOWS)
def test_window_sizes_do_not_change_decode_rows(case: ForwardCase, world_size: int, windows: list[int]) -> None:
    first = prompt_steps(64)
    expected = run(case, world_size, first + window_steps(64, [1] * 40))
    assert_equal(run(case, world_size, first + window_steps(64, windows)), expected)


def test_decode_rows_keep_their_bits_in_any_batch_slot_and_order(case: ForwardCase, world_size: int) -> None:
    stops = (150, 20, 100)
    prompts = [Step(PROMPT, segments((index, 0, stop))) for index, stop in enumerate(stops)]
    expected = run(
        case,
        world_size,
        prompts + [step for index, stop in enumerate(stops) for step in window_steps(stop, [1] * 24, index)],
    )
    batched = [
        Step(DECODE, segments((2, 100, 101), (0, 150, 166), (1, 20, 23)), padding=2),
        Step(DECODE, segments((1, 23, 24), (2, 101, 117)), padding=15),
        Step(DECODE, segments((0, 166, 174), (1, 24, 40), (2, 117, 124))),
        Step(DECODE, segments((1, 40, 44)), padding=12),
    ]
    for slots in ((0, 1, 2), (3, 2, 0)):
        assert_equal(run(case, world_size, prompts + batched, slots), expected)


def test_decode_and_prompt_steps_may_alternate(case: ForwardCase, world_size: int) -> None:
    expected = run(case, world_size, [*prompt_steps(64), *window_steps(64, [1] * 8), *prompt_steps(131, None, 2)])
    mixed = [
        *prompt_steps(64),
        Step(DECODE, segments((0, 64, 67))),
        Step(PROMPT, segments((2, 0, 64))),
        Step(DECODE, segments((0, 67, 72))),
        Step(PROMPT, segments((2, 64, 131))),
    ]
    assert_equal(run(case, world_size, mixed, slots=(1, 2, 3)), expected)


def test_the_number_of_threads_changes_no_bit(case: ForwardCase) -> None:
    steps = [
        Step(PROMPT, segments((0, 0, 128), (1, 0, 70), (2, 0, 64))),
        Step(DECODE, segments((2, 64, 80), (0, 128, 131))),
    ]
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        try:
            found.append(run(case, 1, steps))
        finally:
            torch.set_num_threads(before)
    assert_equal(found[1], found[0])


def test_bf16_rows_keep_their_bits_too(case: ForwardCase, world_size: int) -> None:
    apart = [Step(PROMPT, segments((index, 0, 64))) for index in range(3)]
    expected = run(case, world_size, apart + window_steps(64, [1] * 6, 0), dtype=torch.bfloat16)
    together = [
        Step(PROMPT, segments((2, 0, 64), (0, 0, 64), (1, 0, 64))),
        Step(DECODE, segments((0, 64, 70)), padding=5),
    ]
    assert_equal(run(case, world_size, together, slots=(3, 2, 1), dtype=torch.bfloat16), expected)
