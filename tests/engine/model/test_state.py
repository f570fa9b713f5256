"""The buffers of a model's state: shapes by rank, one slot's reset, padding rows."""

import pytest
import torch
from torch import Tensor

from support.forward_case import NUM_SLOTS, ForwardCase, forward_case, on_ranks
from support.forward_steps import Segment, Step, pack, prompt_steps, run_steps, window_steps
from support.hf_models import HfShape
from support.row_invariance import same_bits
from twinspark_engine.model.model import Model
from twinspark_engine.model.state import DsaState, KdaState, ModelState, ring_rows
from twinspark_kernels.paged import FIRST_BLOCK
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
    assert dsa.latents.values.shape == (5, 256, SHAPE.kv_lora), "a null, a trash and a block for each slot"
    assert dsa.pools.values.shape == (5, 64, SHAPE.index_head_dim)
    assert dsa.ring_keys.shape == (4, 64, SHAPE.index_head_dim)
    assert state.table.tolist() == [[2], [3], [4], [1]], "every slot has its context where nobody reserves"
    assert state.nbytes == sum(tensor.nbytes for tensor in state.tensors())
    assert state.block_nbytes == 256 * SHAPE.kv_lora * 2 + 64 * SHAPE.index_head_dim * 2
    assert state.nbytes == state.kv_nbytes + 4 * state.slot_nbytes


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
        before = [tensor.clone() for tensor in state.tensors()]
        model.forward(pack(Step(row_class, (Segment(0, 0, 9),), padding=7), [ids], [3]), state)
        for tensor, kept in zip(state.tensors(), before, strict=True):
            # By slot, row 3 and the trash row may change; of the blocks, slot 3's (5) and the trash block (1).
            written = {1, 5} if len(tensor) == 2 + NUM_SLOTS else {3, 4}
            same = [row for row in range(len(tensor)) if row not in written]
            assert torch.equal(tensor[same], kept[same])
        return state.find_null_write() is None

    assert on_ranks(case, 1, work, 128) == [True]


@pytest.mark.parametrize("row_class", list(RowClass))
def test_padding_rows_write_to_the_trash_block_which_is_not_the_null_block(
    case: ForwardCase, row_class: RowClass
) -> None:
    def work(model: Model, state: ModelState) -> list[bool]:
        model.forward(pack(Step(row_class, (), padding=5), [], []), state)
        latents = next(layer for layer in state.layers if isinstance(layer, DsaState)).latents.values
        return [bool(block.any()) for block in latents]

    assert on_ranks(case, 1, work, 128) == [[False, True, False, False, False, False]]


def test_a_row_without_a_block_is_found_in_the_null_block(case: ForwardCase) -> None:
    def work(model: Model, state: ModelState) -> list[int | None]:
        state.map_slot(2, ())
        before = state.find_null_write()
        run_steps(model, state, [case.prompt(3)], [2], prompt_steps(3))
        return [before, state.find_null_write()]

    assert on_ranks(case, 1, work, 128) == [[None, 0]]


@pytest.mark.parametrize("world_size", [1, 2])
@pytest.mark.parametrize("latent_dtype", [None, torch.float8_e4m3fn], ids=["fp32", "fp8"])
def test_no_choice_of_blocks_and_no_rubbish_in_the_others_moves_a_bit(
    case: ForwardCase, world_size: int, latent_dtype: torch.dtype | None
) -> None:
    length = 700  # past the dense limit, in three blocks
    steps = prompt_steps(640, 256) + window_steps(640, [1, 16, 3] * 3)
    ids = case.prompt(length)

    def work(model: Model, state: ModelState) -> Tensor:
        def run(blocks: list[int], slot: int) -> Tensor:
            paged = ModelState.allocate(
                case.config, world_size, 4, 768, torch.float32, num_blocks=40, latent_dtype=latent_dtype
            )
            for rows in paged.paged():
                for tensor in rows.tensors():
                    tensor[FIRST_BLOCK:] = torch.nan
            paged.map_slot(slot, blocks)
            found = run_steps(model, paged, [ids], [slot], steps)[0]
            assert paged.find_null_write() is None
            return found

        expected = run([2, 3, 4], 0)
        assert not expected.isnan().any()
        for slot, blocks in ((1, [41, 2, 17]), (3, [40, 39, 38])):
            assert same_bits(run(blocks, slot), expected)
        return expected

    on_ranks(case, world_size, work, 768)


def test_fp8_latents_move_the_logits_a_little(case: ForwardCase) -> None:
    steps = prompt_steps(100)

    def work(model: Model, state: ModelState) -> float:
        plain = run_steps(model, state, [case.prompt(100)], [0], steps)[0]
        fp8 = ModelState.allocate(case.config, 1, 4, 128, torch.float32, latent_dtype=torch.float8_e4m3fn)
        rounded = run_steps(model, fp8, [case.prompt(100)], [0], steps)[0]
        return float(((plain - rounded).abs().amax(1) / plain.abs().amax(1)).median())

    # e4m3 keeps 3 bits behind the leading one: a value is at most 1/16 off, a sum of many less. The median, because a
    # row of this random model may choose another expert.
    assert 0 < on_ranks(case, 1, work, 128)[0] < 1 / 16


def test_fp8_rows_cost_a_byte_a_value_and_a_scale(case: ForwardCase) -> None:
    sizes = {}
    for name, latent_dtype in (("fp32", None), ("fp8", torch.float8_e4m3fn)):
        with torch.device("meta"):
            state = ModelState.allocate(
                case.config, 1, 2, 1 << 20, torch.float32, num_blocks=4097, latent_dtype=latent_dtype
            )
        sizes[name] = state.block_nbytes
    assert sizes["fp32"] - sizes["fp8"] == 256 * (SHAPE.kv_lora * 3 - 4)


def test_the_mtp_layer_has_rows_of_its_own_where_it_runs(case: ForwardCase) -> None:
    without, with_mtp = (
        ModelState.allocate(case.config, 1, 2, 300, torch.float32, with_mtp=flag) for flag in (False, True)
    )
    assert without.mtp is None
    assert with_mtp.mtp is not None
    assert with_mtp.block_nbytes == 2 * without.block_nbytes, "one DSA layer more beside the one there is"
    assert with_mtp.mtp.latents.table is with_mtp.table
    assert len(list(with_mtp.paged())) == 4


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
