"""Paged rows: the table alone decides what is read and written, up to the last of 2^20 positions."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from support.paged import owned_blocks, paged, quantized, unowned_blocks, unpaged
from support.row_invariance import same_bits
from twinspark_kernels.indexer import scratch_bytes, select_pools
from twinspark_kernels.latent_attention import latent_attention
from twinspark_kernels.latent_rows import write_latents
from twinspark_kernels.paged import (
    BLOCK_TOKENS,
    FIRST_BLOCK,
    NULL_BLOCK,
    TRASH_BLOCK,
    PagedRows,
    build_table,
    check_paged,
    map_blocks,
)
from twinspark_kernels.pool_keys import update_pools
from twinspark_kernels.scratch import STEP_BYTES, GrowingScratch

LAST = (1 << 20) - 1
NUM_COLUMNS = (1 << 20) // BLOCK_TOKENS
WIDTH = 4
SEEDS = (1, 2, 3)


def attend(q: Tensor, latents: PagedRows, slots: Tensor, positions: Tensor, selected: Tensor) -> Tensor:
    return latent_attention(q, latents, slots, positions, selected, scale=0.3, pool=4, index_topk=64)


@pytest.mark.parametrize("is_fp8", [False, True], ids=["plain", "fp8"])
@pytest.mark.parametrize("block_rows", [16, 64, 256, 512])
def test_attention_has_the_bits_of_any_other_order_and_size_of_blocks(block_rows: int, is_fp8: bool) -> None:
    rows, length = 40, 1200
    latents = torch.randn(3, length, 24)
    q = torch.randn(rows, 3, 24)
    slots, positions = torch.full((rows,), 2), torch.arange(40, 40 + rows)  # dense up to position 66, then sparse
    selected = torch.full((rows, 16), -1)
    for row in range(27, rows):
        selected[row] = torch.randperm((40 + row + 1) // 4)[:16].sort().values
    expected, *others = (
        attend(q, quantized(blocks) if is_fp8 else blocks, slots, positions, selected)
        for blocks in (paged(latents, 512), *(paged(latents, block_rows, seed) for seed in SEEDS))
    )
    assert expected.isfinite().all()
    assert all(same_bits(other, expected) for other in others)


@pytest.mark.parametrize("block_rows", [4, 16, 64, 512])
def test_selection_has_the_bits_of_any_other_order_and_size_of_blocks(block_rows: int) -> None:
    rows, pools = 30, torch.randn(3, 700, 24)
    q, w = torch.randn(rows, 2, 24), torch.randn(rows, 2)
    slots, positions = torch.full((rows,), 1), torch.arange(2500, 2500 + rows)
    expected = select_pools(q, w, paged(pools, 512), slots, positions, num_selected=16, pool=4)
    for seed in SEEDS:
        blocks = paged(pools, block_rows, seed)
        assert same_bits(select_pools(q, w, blocks, slots, positions, num_selected=16, pool=4), expected)


def test_writers_touch_the_blocks_of_their_rows_and_the_trash_block_only() -> None:
    latents, pools = paged(torch.full((3, 200, 8), torch.nan), 64, 5), paged(torch.full((3, 50, 8), torch.nan), 16, 6)
    slots = torch.tensor([2] * 70 + [-1] * 5 + [0] * 9)
    positions = torch.cat((torch.arange(60, 130), torch.zeros(5, dtype=torch.int64), torch.arange(9)))
    rows = torch.randn(len(slots), 8)
    write_latents(rows, latents, slots, positions)
    ring = torch.zeros(4, 64, 8)
    update_pools(rows, rows, torch.randn(4, 8), ring, ring.clone(), pools, slots, positions)
    found = unpaged(latents)
    assert same_bits(found[2, 60:130], rows[:70])
    assert same_bits(found[0, :9], rows[75:])
    assert found[1].isnan().all()
    assert found[2, :60].isnan().all()
    assert found[2, 130:].isnan().all()
    assert found[0, 9:].isnan().all()
    written = unpaged(pools)
    assert written[2, 15:32].isfinite().all()
    assert written[0, :2].isfinite().all()
    assert written[2, 32:].isnan().all()
    for family in (latents, pools):
        assert not family.values[NULL_BLOCK].any()
        assert family.values[unowned_blocks(family)].isnan().all()
    assert latents.values[TRASH_BLOCK, 0].isfinite().all(), "padding rows lie in the trash block"


def test_a_slot_whose_row_has_no_block_reads_zeros_and_writes_into_the_null_block() -> None:
    latents = PagedRows(torch.zeros(6, 16, 8), build_table(2, 3))
    map_blocks(latents.table, 1, [5])
    assert latents.table.tolist() == [[0, 0, 0], [5, 0, 0], [1, 1, 1]]
    write_latents(torch.ones(2, 8), latents, torch.tensor([1, 1]), torch.tensor([15, 16]))
    assert latents.values.flatten(1).any(1).tolist() == [True, False, False, False, False, True]
    map_blocks(latents.table, 1, [])
    assert latents.table[1].tolist() == [0, 0, 0]


def test_a_chunk_behind_the_tables_end_has_its_whole_shape() -> None:
    rows = torch.randn(2, 40, 8)
    chunk = paged(rows, 8).read_chunk(1, 32, 64)
    assert same_bits(chunk[:8], rows[1, 32:])
    assert chunk.shape == (64, 8)
    assert not chunk[8:].any()


class LongPool:
    """4,097 blocks, the table of a slot that has 4,096 of them in falling order, and of one with the last block."""

    def __init__(self, block_rows: int, dtype: torch.dtype = torch.float32) -> None:
        self.values = torch.zeros(FIRST_BLOCK + NUM_COLUMNS + 1, block_rows, WIDTH, dtype=dtype)
        table = build_table(2, NUM_COLUMNS + 1)
        map_blocks(table, 0, list(range(FIRST_BLOCK + NUM_COLUMNS - 1, FIRST_BLOCK - 1, -1)))
        map_blocks(table, 1, [FIRST_BLOCK + NUM_COLUMNS])
        self.rows = PagedRows(self.values, table)

    def short(self) -> PagedRows:
        """The same blocks through a table of one column."""
        return replace(self.rows, table=self.rows.table[:, :1].contiguous())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn], ids=["fp32", "bf16", "fp8"])
def test_latent_rows_just_below_two_to_the_twenty_are_written_to_their_places(dtype: torch.dtype) -> None:
    pool = LongPool(BLOCK_TOKENS, dtype)
    scales = torch.zeros(pool.values.shape[:2]) if dtype == torch.float8_e4m3fn else None
    latents = replace(pool.rows, scales=scales)
    rows = torch.arange(24.0).view(6, WIDTH)
    plain = rows if scales is not None else rows.to(dtype)
    slots, positions = torch.tensor([0] * 4 + [1, -1]), torch.tensor([*range(LAST - 3, LAST + 1), 255, 0])
    write_latents(plain, latents, slots, positions)
    places = latents.places(slots, positions)
    first = FIRST_BLOCK * BLOCK_TOKENS
    expected = [first + 252, first + 253, first + 254, first + 255, len(pool.values) * BLOCK_TOKENS - 1, BLOCK_TOKENS]
    assert places.tolist() == expected
    # Values up to 23 need four bits behind the leading one: e4m3 rounds the odd ones above 16.
    torch.testing.assert_close(latents.read(places).float(), rows, atol=0.0, rtol=1 / 16 if scales is not None else 0.0)
    touched = latents.values.view(torch.uint8).flatten(1).any(1).nonzero()[:, 0].tolist()
    assert touched == [TRASH_BLOCK, FIRST_BLOCK, len(pool.values) - 1]


def test_places_beyond_two_to_the_31_are_counted_in_64_bits() -> None:
    values = torch.empty(1, 1, 1).expand(1 << 24, BLOCK_TOKENS, 1)  # no memory: only its shape is read
    table = torch.full((2, NUM_COLUMNS), (1 << 24) - 1, dtype=torch.int32)
    places = PagedRows(values, table).places(torch.tensor([0]), torch.tensor([LAST]))
    assert places.tolist() == [(1 << 32) - 1]


def test_sparse_attention_just_below_two_to_the_twenty_reads_its_tokens() -> None:
    pool = LongPool(BLOCK_TOKENS)
    rows, num_pools = 5, 16
    positions = torch.arange(LAST - rows + 1, LAST + 1)
    q = torch.randn(rows, 2, WIDTH)
    selected = torch.stack([torch.randperm((1 << 18) - 2)[:num_pools].sort().values for _ in range(rows)])
    selected[:, -1] = (LAST + 1) // 4 - 2  # a pool of the last block
    tokens = (selected[..., None] * 4 + torch.arange(4)).flatten(1)
    slots = torch.zeros(rows, dtype=torch.int64)
    keys = torch.randn(1 << 20, WIDTH)
    pool.rows.write(torch.zeros(1, dtype=torch.int64), torch.arange(1 << 20), keys)
    found = attend(q, pool.rows, slots, positions, selected)
    for row, position in enumerate(positions.tolist()):
        tail = torch.arange((position + 1) // 4 * 4, position + 1)
        seen = keys[torch.cat((tokens[row], tail))].double()
        exact = torch.softmax(q[row].double() @ seen.t() * 0.3, -1) @ seen
        torch.testing.assert_close(found[row].double(), exact, atol=1e-5, rtol=1e-5)


def test_dense_attention_in_the_last_block_of_the_pool_reads_that_block() -> None:
    pool = LongPool(BLOCK_TOKENS)
    keys = torch.randn(20, WIDTH)
    slots, positions = torch.ones(20, dtype=torch.int64), torch.arange(20)
    write_latents(keys, pool.rows, slots, positions)
    q, selected = torch.randn(20, 2, WIDTH), torch.zeros(20, 16, dtype=torch.int64)
    expected = attend(q, paged(keys[None].repeat(2, 1, 1)), slots, positions, selected)
    assert same_bits(attend(q, pool.rows, slots, positions, selected), expected)
    assert same_bits(attend(q, pool.short(), slots, positions, selected), expected)


def test_pools_just_below_two_to_the_twenty_are_written_and_scored() -> None:
    pool = LongPool(BLOCK_TOKENS // 4)
    rows = 8
    slots, positions = torch.zeros(rows, dtype=torch.int64), torch.arange(LAST - rows + 1, LAST + 1)
    keys, gates, ape = torch.randn(rows, WIDTH), torch.randn(rows, WIDTH), torch.randn(4, WIDTH)
    ring = torch.zeros(3, 64, WIDTH)
    update_pools(keys, gates, ape, ring, ring.clone(), pool.rows, slots, positions)
    touched = pool.values.flatten(1).any(1).nonzero()[:, 0].tolist()
    assert touched == [FIRST_BLOCK]
    assert pool.values[FIRST_BLOCK, -2:].all()
    assert not pool.values[FIRST_BLOCK, :-2].any()
    # The two pools score above all the zeros before them; of those the lowest are taken.
    q = pool.values[FIRST_BLOCK, -1].sign().expand(rows, 1, WIDTH)
    weights = torch.ones(rows, 1)
    scratch = GrowingScratch()
    found = select_pools(q, weights, pool.rows, slots, positions, num_selected=5, pool=4, scratch=scratch)
    assert found[-1].tolist()[-1] == (LAST + 1) // 4 - 1
    assert found[-2].tolist()[-1] != (LAST + 1) // 4 - 1, "its last token lies behind this row"
    assert scratch.nbytes == scratch_bytes(1 << 20, pool=4, heads=1, max_rows=rows) == 8 * STEP_BYTES


def test_the_scratch_grows_in_steps_and_is_kept() -> None:
    scratch = GrowingScratch()
    first = scratch.take(3, 5)
    assert first.shape == (3, 5)
    assert scratch.nbytes == STEP_BYTES
    assert scratch.take(1, 15).data_ptr() == first.data_ptr()
    scratch.take(2, STEP_BYTES // 8 + 1)
    assert scratch.nbytes == 2 * STEP_BYTES


@pytest.mark.parametrize("max_rows", [1, 16, 4096])
@pytest.mark.parametrize("heads", [4, 32])
def test_no_request_needs_more_scratch_than_its_bound(heads: int, max_rows: int) -> None:
    scratch = GrowingScratch()
    for length in (100, 1000, 3000):
        rows = min(max_rows, length)
        q, w = torch.randn(rows, heads, WIDTH), torch.randn(rows, heads)
        slots, positions = torch.zeros(rows, dtype=torch.int64), torch.arange(length - rows, length)
        blocks = paged(torch.randn(1, length // 4 + 1, WIDTH))
        select_pools(q, w, blocks, slots, positions, num_selected=8, pool=4, scratch=scratch)
        assert scratch.nbytes <= scratch_bytes(length, pool=4, heads=heads, max_rows=max_rows)


def test_wrong_blocks_are_refused_by_name() -> None:
    rows = paged(torch.zeros(2, 40, 8))
    with pytest.raises(ValueError, match=r"^rows: must be contiguous blocks of shape \(any, any, 9\)"):
        check_paged("rows", rows, 9, 512)
    with pytest.raises(ValueError, match=r"^rows: a block's rows must be a power of two that divides 96, got 64"):
        check_paged("rows", rows, 8, 96)
    with pytest.raises(TypeError, match=r"^rows: the table must be int32"):
        check_paged("rows", replace(rows, table=rows.table.long()), 8, 512)
    with pytest.raises(TypeError, match=r"^rows: scales belong to float8_e4m3fn"):
        check_paged("rows", replace(rows, scales=torch.zeros(rows.values.shape[:2])), 8, 512)
    with pytest.raises(ValueError, match=r"^rows: scales must be fp32"):
        check_paged("rows", replace(quantized(rows), scales=torch.zeros(3)), 8, 512)
    assert len(owned_blocks(rows)) == 2
