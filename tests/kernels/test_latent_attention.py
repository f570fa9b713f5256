"""Latent attention: agrees with its formula and with Transformers, dense and sparse; no schedule moves a bit."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import Tensor
from transformers import Glm5NextTextConfig
from transformers.models.glm5_next import modeling_glm5_next as hf

from support.hf_reference import StableTopk
from support.paged import paged
from support.row_invariance import ROW_COUNTS, THREAD_COUNTS, check_row_counts, same_bits, threads
from support.schedules import (
    Schedule,
    alone,
    chunked,
    in_forwards_of,
    one_by_one,
    run_schedule,
    together,
    windows,
    with_thread_counts,
)
from twinspark_kernels.indexer import select_pools
from twinspark_kernels.latent_attention import dense_limit, latent_attention
from twinspark_kernels.pool_keys import update_pools

NUM_SLOTS = 5
LENGTHS = {3: 40, 0: 20, 1: 1, 4: 17}
CONTEXT = 600
# Heads, L: a rank half of the demo, and sizes that no tile and no vector register divides.
SHAPES = [(2, 128), (3, 24), (9, 100), (1, 4)]
SHAPE_IDS = ["2x128", "3x24", "9x100", "1x4"]
WIDTHS = (4, 24, 100, 1000, 64)

Sequences = dict[int, tuple[Tensor, Tensor]]


def make_case(
    heads: int,
    width: int,
    first: int,
    pool: int,
    topk: int,
    dtype: torch.dtype,
    lengths: Mapping[int, int] = LENGTHS,
) -> tuple[Sequences, Tensor]:
    """Queries with selected pools for every slot's rows, and latents: NaN past the last row and in unused slots."""
    latents = torch.full((NUM_SLOTS + 1, CONTEXT, width), torch.nan, dtype=dtype)
    sequences = {}
    for slot, length in lengths.items():
        latents[slot, : first + length] = torch.randn(first + length, width).to(dtype)
        q = (torch.randn(length, heads, width) * 3).to(dtype)
        selected = torch.stack([pick(first + row, pool, topk) for row in range(length)])
        sequences[slot] = (q, selected)
    return sequences, latents


def pick(position: int, pool: int, topk: int) -> Tensor:
    """Some pools, ascending; -1 where there are fewer."""
    count, places = (position + 1) // pool, topk // pool
    chosen = torch.randperm(count)[:places].sort().values
    return torch.cat((chosen, torch.full((places - len(chosen),), -1)))


def attended(position: int, selected: Tensor, pool: int, topk: int) -> Tensor:
    """Positions that a row sees, by the definition."""
    if position + 1 < topk + pool:
        return torch.arange(position + 1)
    tokens = (selected[:, None] * pool + torch.arange(pool)).flatten()
    return torch.cat((tokens, torch.arange((position + 1) // pool * pool, position + 1)))


def run(case: tuple[Sequences, Tensor], schedule: Schedule, first: int, pool: int, topk: int) -> dict[int, Tensor]:
    sequences, latents = case
    scale = latents.shape[-1] ** -0.5

    def step(q: Tensor, selected: Tensor, slots: Tensor, positions: Tensor) -> Tensor:
        # Later rows of the slots are not written yet.
        seen = latents.clone()
        for slot in range(NUM_SLOTS):
            rows = positions[slots == slot]
            seen[slot, int(rows[-1]) + 1 if len(rows) else 0 :] = torch.nan
        return latent_attention(q, paged(seen), slots, positions, selected, scale=scale, pool=pool, index_topk=topk)

    return run_schedule(step, sequences, schedule, first)


# First position, pool, index_topk: dense from 0; across key chunks; across the dense limit (three times); sparse only.
PLACES = [(0, 4, 512), (490, 4, 1024), (50, 4, 64), (60, 16, 64), (500, 4, 520), (540, 4, 520)]


@pytest.mark.parametrize(("heads", "width"), SHAPES, ids=SHAPE_IDS)
@pytest.mark.parametrize(("first", "pool", "topk"), PLACES)
def test_output_is_the_softmax_over_the_attended_latents(
    heads: int, width: int, first: int, pool: int, topk: int
) -> None:
    case = make_case(heads, width, first, pool, topk, torch.float32)
    outputs = run(case, together(LENGTHS, padding=2), first, pool, topk)
    sequences, latents = case
    for slot, (q, selected) in sequences.items():
        for row in range(len(q)):
            keys = latents[slot, attended(first + row, selected[row], pool, topk)].double()
            exact = torch.softmax(q[row].double() @ keys.t() * width**-0.5, -1) @ keys
            torch.testing.assert_close(outputs[slot][row].double(), exact, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("heads", "width"), SHAPES, ids=SHAPE_IDS)
@pytest.mark.parametrize(("first", "pool", "topk"), PLACES)
def test_no_schedule_and_no_thread_count_moves_a_bit(heads: int, width: int, first: int, pool: int, topk: int) -> None:
    case = make_case(heads, width, first, pool, topk, torch.float32)
    with threads(1):
        expected = run(case, alone(LENGTHS), first, pool, topk)
    schedules = [together(LENGTHS, padding=1), one_by_one(LENGTHS), windows(LENGTHS, seed=1), chunked(LENGTHS, seed=2)]
    for schedule, count in with_thread_counts(schedules):
        with threads(count):
            found = run(case, schedule, first, pool, topk)
        assert all(same_bits(found[slot], expected[slot]) for slot in LENGTHS)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("topk", [16, 64], ids=["sparse", "dense"])
def test_one_row_of_each_of_any_number_of_slots_keeps_its_bits(width: int, topk: int) -> None:
    most, heads, position = max(ROW_COUNTS), 2, 42
    latents = paged(torch.randn(most, position + 1, width))

    def attend(q: Tensor, selected: Tensor, slots: Tensor) -> Tensor:
        positions = torch.full_like(slots, position)
        return latent_attention(q, latents, slots, positions, selected, scale=0.2, pool=4, index_topk=topk)

    def make_inputs(rows: int) -> tuple[Tensor, ...]:
        selected = torch.stack([pick(position, 4, topk) for _ in range(rows)])
        return torch.randn(rows, heads, width) * 3, selected, torch.randperm(most)

    check_row_counts(attend, make_inputs)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", ROW_COUNTS)
def test_any_number_of_rows_in_a_forward_gives_the_same_bits(width: int, rows: int) -> None:
    lengths = {3: max(ROW_COUNTS)}
    # From row 19 on the rows are sparse.
    sequences, latents = make_case(2, width, 0, 4, 16, torch.float32, lengths)
    with threads(1):
        expected = run((sequences, latents), one_by_one(lengths), 0, 4, 16)
    for count in THREAD_COUNTS:
        with threads(count):
            found = run((sequences, latents), in_forwards_of(rows, lengths), 0, 4, 16)
        assert same_bits(found[3], expected[3])


def test_blocks_of_rows_move_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case(3, 24, 40, 4, 64, torch.float32)
    expected = run(case, alone(LENGTHS), 40, 4, 64)
    monkeypatch.setattr("twinspark_kernels.latent_attention.reference.DENSE_PAIRS", 15)
    monkeypatch.setattr("twinspark_kernels.latent_attention.reference.SPARSE_ROWS", 3)
    found = run(case, alone(LENGTHS), 40, 4, 64)
    assert all(same_bits(found[slot], expected[slot]) for slot in LENGTHS)


@pytest.mark.parametrize("pool", [4, 16])
def test_the_last_dense_row_is_the_one_whose_pools_and_tail_are_everything(pool: int) -> None:
    topk = 4 * pool
    limit = dense_limit(pool, topk)
    latents, q = torch.randn(1, CONTEXT, 24), torch.randn(1, 2, 24)
    slots = torch.zeros(1, dtype=torch.int64)
    everything = torch.arange(4)[None]
    for position in (limit - 1, limit):
        # The sparse form of a row that could be dense: the same keys, summed by another walk.
        sparse = latent_attention(
            q, paged(latents), slots, torch.tensor([position]), everything, scale=1.0, pool=pool, index_topk=topk
        )
        keys = latents[0, : position + 1].double()
        exact = torch.softmax(q[0].double() @ keys.t(), -1) @ keys
        complete = position < limit
        assert ((sparse[0].double() - exact).abs().max() < 1e-5) == complete


def test_bf16_output_is_the_fp32_result_rounded_once() -> None:
    narrow = make_case(2, 24, 40, 4, 64, torch.bfloat16)
    sequences, latents = narrow
    wide = ({slot: (q.float(), selected) for slot, (q, selected) in sequences.items()}, latents.float())
    ours, exact = (run(case, alone(LENGTHS), 40, 4, 64) for case in (narrow, wide))
    assert all(same_bits(ours[slot], exact[slot].bfloat16()) for slot in LENGTHS)


@pytest.mark.parametrize("kpool", [4, 16])
@pytest.mark.parametrize("length", [1, 63, 64, 79, 80, 200])
def test_attention_with_its_indexer_agrees_with_transformers(kpool: int, length: int) -> None:
    heads, width, nope, value = 3, 20, 12, 8
    config = Glm5NextTextConfig(
        hidden_size=24,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        q_lora_rank=12,
        kv_lora_rank=width,
        qk_nope_head_dim=nope,
        qk_rope_head_dim=0,
        v_head_dim=value,
        index_n_heads=3,
        index_head_dim=16,
        index_topk=64,
        index_kpool=kpool,
        attn_implementation="eager",
    )
    module = hf.Glm5NextTextAttention(config, 0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    x = torch.randn(length, 24)
    with StableTopk(lambda *_: None), torch.no_grad():
        theirs = module(x[None], torch.ones(1, length, dtype=torch.bool))[0][0]
        residual = module.q_a_layernorm(module.q_a_proj(x))
        latents = module.kv_a_layernorm(module.kv_a_proj_with_mqa(x))
        q = module.q_b_proj(residual).view(length, heads, nope)
        w_k, w_v = module.kv_b_proj.weight.view(heads, nope + value, width).split((nope, value), 1)
        index = module.indexer
        keys, gates = index.k_norm(index.wk(x)), x @ index.index_kpool_compress_gate.t()
        index_q, index_w = index.wq_b(residual).view(length, 3, 16), index.weights_proj(x) * 3**-0.5
        ape = index.index_kpool_compress_ape.detach()
        slots, positions = torch.zeros(length, dtype=torch.int64), torch.arange(length)
        rings, pools = torch.zeros(2, 2, 64, 16), paged(torch.zeros(1, 240 // kpool, 16))
        update_pools(keys, gates, ape, rings[0], rings[1], pools, slots, positions)
        selected = select_pools(index_q, index_w, pools, slots, positions, num_selected=64 // kpool, pool=kpool)
        cache = torch.full((2, 240, width), torch.nan)
        cache[0, :length] = latents
        absorbed = torch.einsum("thn,hnl->thl", q, w_k)
        seen = latent_attention(
            absorbed, paged(cache), slots, positions, selected, scale=nope**-0.5, pool=kpool, index_topk=64
        )
        ours = module.o_proj(torch.einsum("thl,hvl->thv", seen, w_v).flatten(1))
    assert (ours - theirs).abs().max() <= 1e-5 * theirs.abs().max()


def test_wrong_shapes_dtypes_and_missing_pools_are_refused() -> None:
    q, latents = torch.zeros(2, 3, 8), paged(torch.zeros(2, 100, 8))
    slots, positions = torch.zeros(2, dtype=torch.int64), torch.arange(2)
    attend = partial(latent_attention, scale=1.0, pool=4)
    selected = torch.zeros(2, 4, dtype=torch.int64)
    with pytest.raises(ValueError, match="latents"):
        attend(q, paged(torch.zeros(2, 100, 4)), slots, positions, selected, index_topk=16)
    with pytest.raises(ValueError, match="contiguous"):
        attend(q, replace(latents, values=latents.values[:, ::2]), slots, positions, selected, index_topk=16)
    with pytest.raises(ValueError, match="selected"):
        attend(q, latents, slots, positions, selected[:, :3], index_topk=16)
    with pytest.raises(TypeError, match="selected"):
        attend(q, latents, slots, positions, selected.int(), index_topk=16)
    with pytest.raises(ValueError, match="index_topk"):
        attend(q, latents, slots, positions, selected, index_topk=18)
    with pytest.raises(ValueError, match="row at position 20 needs pools"):
        attend(q, latents, slots, positions + 19, None, index_topk=16)
    attend(q, latents, slots, positions, None, index_topk=16)
