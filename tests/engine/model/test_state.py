"""The buffers of a model's state: shapes by rank, one slot's reset, padding rows."""

import pytest
import torch

from support.forward_case import ForwardCase, forward_case, on_ranks
from support.forward_steps import Segment, Step, pack, prompt_steps, run_steps, window_steps
from support.hf_models import HfShape
from twinspark_engine.model.model import Model
from twinspark_engine.model.state import DsaState, KdaState, ModelState, ring_rows
from twinspark_kernels.row_class import RowClass

SHAPE = HfShape("kD")


@pytest.fixture
def case() -> ForwardCase:
    return forward_case(SHAPE)


@pytest.mark.parametrize("world_size", [1, 2])
def test_buffers_hold_one_trash_row_and_this_ranks_heads(case: ForwardCase, world_size: int) -> None:
    state = ModelState.allocate(case.config, world_size, 3, 42, torch.bfloat16)
    kda, dsa = state.layers
    assert isinstance(kda, KdaState)
    assert isinstance(dsa, DsaState)
    heads = SHAPE.kda_heads // world_size
    assert kda.recurrent.shape == (4, heads, SHAPE.kda_head_dim, SHAPE.kda_head_dim)
    assert kda.recurrent.dtype == torch.float32
    assert kda.conv.shape == (4, 3, 3 * heads * SHAPE.kda_head_dim)
    assert state.context == 44, "whole pools"
    assert dsa.latents.shape == (4, 44, SHAPE.kv_lora)
    assert dsa.pools.shape == (4, 11, SHAPE.index_head_dim)
    assert state.nbytes == sum(tensor.nbytes for tensor in state.tensors())


@pytest.mark.parametrize(("pool", "rows"), [(1, 64), (4, 64), (16, 64), (32, 64), (64, 128)])
def test_the_index_ring_holds_a_pool_and_a_window_in_whole_pools(pool: int, rows: int) -> None:
    assert ring_rows(pool) == rows


def test_a_used_slot_gives_the_bits_of_a_fresh_one_after_its_reset(case: ForwardCase) -> None:
    first, second = case.prompt(90), case.prompt(75)
    steps = prompt_steps(64) + window_steps(64, [11])

    def work(model: Model, state: ModelState) -> bool:
        fresh = run_steps(model, state, [second], [2], steps)[0]
        run_steps(model, state, [first], [1], prompt_steps(90))
        return torch.equal(run_steps(model, state, [second], [1], steps)[0], fresh)

    assert on_ranks(case, 1, work, 128) == [True]


@pytest.mark.parametrize("row_class", list(RowClass))
def test_padding_rows_and_other_slots_leave_a_slot_untouched(case: ForwardCase, row_class: RowClass) -> None:
    ids = case.prompt(64)

    def work(model: Model, state: ModelState) -> bool:
        run_steps(model, state, [ids], [0], prompt_steps(64))
        before = [tensor[0].clone() for tensor in state.tensors()]
        model.forward(pack(Step(row_class, (Segment(0, 0, 9),), padding=7), [ids], [3]), state)
        return all(torch.equal(tensor[0], kept) for tensor, kept in zip(state.tensors(), before, strict=True))

    assert on_ranks(case, 1, work, 128) == [True]


def test_room_for_more_context_changes_no_bit(case: ForwardCase) -> None:
    """With too little room for a sparse row the indexer is not asked at all; the rows must not notice."""
    length = SHAPE.dense_limit - 2

    def work(model: Model, state: ModelState) -> torch.Tensor:
        steps = prompt_steps(length - 5) + window_steps(length - 5, [2, 3])
        return run_steps(model, state, [case.prompt(length)], [0], steps)[0]

    small, large = on_ranks(case, 1, work, SHAPE.dense_limit - 1), on_ranks(case, 1, work, 700)
    assert torch.equal(small[0], large[0])


def test_forwards_allocate_no_state(case: ForwardCase) -> None:
    def work(model: Model, state: ModelState) -> bool:
        before = [tensor.data_ptr() for tensor in state.tensors()]
        run_steps(model, state, [case.prompt(100)], [0], prompt_steps(64) + window_steps(64, [1] * 36))
        return before == [tensor.data_ptr() for tensor in state.tensors()]

    assert on_ranks(case, 1, work, 128) == [True]
