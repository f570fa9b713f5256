"""Pool keys: agree with their formula; a pool has the same bits whichever forwards brought its members."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from support.paged import paged, unpaged
from support.row_invariance import ROW_COUNTS, THREAD_COUNTS, check_row_invariance, same_bits, threads
from support.schedules import (
    Chunk,
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
from twinspark_kernels.pool_keys import update_pools

NUM_SLOTS = 5
LENGTHS = {3: 250, 0: 64, 1: 1, 4: 131}
CONTEXT = 512
RING = 64
WIDTHS = (4, 24, 100, 1000, 64)

Sequences = dict[int, tuple[Tensor, Tensor]]


class PoolState:
    """Rings and pools; NaN where nothing was written."""

    def __init__(self, kpool: int, width: int, dtype: torch.dtype) -> None:
        self.keys = torch.full((NUM_SLOTS + 1, RING, width), torch.nan, dtype=dtype)
        self.gates = self.keys.clone()
        self.blocks = paged(torch.full((NUM_SLOTS, CONTEXT // kpool, width), torch.nan, dtype=dtype), 16)

    @property
    def pools(self) -> Tensor:
        return unpaged(self.blocks)

    def in_use(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.keys[:NUM_SLOTS], self.gates[:NUM_SLOTS], self.pools[:NUM_SLOTS]


def make_sequences(width: int, dtype: torch.dtype = torch.float32) -> Sequences:
    return {
        slot: (torch.randn(length, width).to(dtype), (torch.randn(length, width) * 2).to(dtype))
        for slot, length in LENGTHS.items()
    }


def run(sequences: Sequences, ape: Tensor, schedule: Schedule) -> PoolState:
    keys = next(iter(sequences.values()))[0]
    state = PoolState(len(ape), keys.shape[1], keys.dtype)

    def step(keys: Tensor, gates: Tensor, slots: Tensor, positions: Tensor) -> None:
        update_pools(keys, gates, ape, state.keys, state.gates, state.blocks, slots, positions)

    run_schedule(step, sequences, schedule)
    return state


def one_page(keys: Tensor, gates: Tensor, ape: Tensor) -> Tensor:
    pools = len(keys) // len(ape)
    shape = (pools, len(ape), keys.shape[1])
    k, g = (x[: pools * len(ape)].double().view(shape) for x in (keys, gates))
    return (torch.softmax(g + ape.double(), 1) * k).sum(1)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kpool", [4, 16])
def test_pools_are_the_weighted_means_of_complete_groups(kpool: int, width: int) -> None:
    sequences, ape = make_sequences(width), torch.randn(kpool, width)
    state = run(sequences, ape, together(LENGTHS, padding=2))
    for slot, (keys, gates) in sequences.items():
        exact = one_page(keys, gates, ape)
        torch.testing.assert_close(state.pools[slot, : len(exact)].double(), exact, atol=1e-6, rtol=1e-6)
        assert state.pools[slot, len(exact) :].isnan().all(), "an incomplete pool is not written"
        for position in range(max(0, len(keys) - RING), len(keys)):
            assert same_bits(state.keys[slot, position % RING], keys[position])
            assert same_bits(state.gates[slot, position % RING], gates[position])
    assert state.pools[[2, NUM_SLOTS]].isnan().all()
    assert state.keys[2].isnan().all()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kpool", [4, 16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
def test_no_schedule_and_no_thread_count_moves_a_bit(kpool: int, width: int, dtype: torch.dtype) -> None:
    sequences, ape = make_sequences(width, dtype), torch.randn(kpool, width)
    with threads(1):
        expected = run(sequences, ape, alone(LENGTHS)).in_use()
    schedules = [together(LENGTHS, padding=3), one_by_one(LENGTHS), chunked(LENGTHS, seed=1), chunked(LENGTHS, seed=2)]
    schedules += [windows(LENGTHS, seed, most) for seed, most in ((3, 16), (4, 5), (5, 16))]
    for schedule, count in with_thread_counts(schedules):
        with threads(count):
            found = run(sequences, ape, schedule).in_use()
        assert all(same_bits(ours, theirs) for ours, theirs in zip(found, expected, strict=True))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kpool", [4, 16])
def test_one_row_of_each_of_any_number_of_slots_keeps_the_bits_of_its_pool(kpool: int, width: int) -> None:
    ape = torch.randn(kpool, width)
    ring = 2 * kpool + 16 - 16 % kpool

    def step(keys: Tensor, gates: Tensor, ring_keys: Tensor, ring_gates: Tensor) -> tuple[Tensor, ...]:
        # The row completes pool 1, whose other members lie in the ring.
        slots, positions = torch.arange(len(keys)), torch.full((len(keys),), 2 * kpool - 1)
        pools = paged(torch.zeros(len(keys), 3, width), 4)
        pools = replace(pools, table=pools.table[:-1])  # every row's slot is one of a request
        update_pools(keys, gates, ape, ring_keys, ring_gates, pools, slots, positions)
        return unpaged(pools), ring_keys, ring_gates

    def make_inputs(rows: int) -> tuple[Tensor, ...]:
        shapes = [(rows, width), (rows, width), (rows, ring, width), (rows, ring, width)]
        return tuple(torch.randn(shape) for shape in shapes)

    check_row_invariance(step, make_inputs)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("rows", ROW_COUNTS)
def test_any_number_of_rows_in_a_forward_writes_the_same_bits(width: int, rows: int) -> None:
    lengths = {0: max(ROW_COUNTS)}
    sequences = {0: (torch.randn(lengths[0], width), torch.randn(lengths[0], width) * 2)}
    for kpool in (4, 16):
        ape = torch.randn(kpool, width)
        with threads(1):
            expected = run(sequences, ape, one_by_one(lengths)).in_use()
        for count in THREAD_COUNTS:
            with threads(count):
                found = run(sequences, ape, in_forwards_of(rows, lengths)).in_use()
            assert all(same_bits(ours, theirs) for ours, theirs in zip(found, expected, strict=True))


@pytest.mark.parametrize("kpool", [4, 16])
def test_windows_written_anew_after_rejections_leave_the_pools_of_accepted_rows(kpool: int) -> None:
    width, total = 24, 200
    generator = torch.Generator().manual_seed(kpool)
    accepted = (torch.randn(total, width), torch.randn(total, width))
    ape = torch.randn(kpool, width)
    expected = run({3: accepted}, ape, alone({3: total})).in_use()
    state = PoolState(kpool, width, torch.float32)

    def write(keys: Tensor, gates: Tensor, position: int) -> None:
        slots = torch.full((len(keys),), 3)
        positions = torch.arange(position, position + len(keys))
        update_pools(keys, gates, ape, state.keys, state.gates, state.blocks, slots, positions)

    position = 0
    while position < total:
        kept = int(torch.randint(1, 17, (), generator=generator))
        rows = tuple(x[position : position + kept] for x in accepted)
        rejected = torch.full((16 - len(rows[0]), width), 1e3)
        write(torch.cat((rows[0], rejected)), torch.cat((rows[1], rejected)), position)
        position += kept
    complete = total // kpool
    assert same_bits(state.pools[3, :complete], expected[2][3, :complete])


def test_a_pool_of_a_segment_that_starts_inside_it_takes_the_members_of_its_own_slot() -> None:
    keys, gates, ape = torch.randn(4, 24), torch.randn(4, 24), torch.randn(4, 24)
    sequences = {0: (keys, gates), 3: (torch.randn(4, 24), torch.randn(4, 24))}
    state = run(sequences, ape, [[Chunk(0, 0, 3), Chunk(3, 0, 2)], [Chunk(3, 2, 4), Chunk(0, 3, 4)]])
    for slot, rows in sequences.items():
        torch.testing.assert_close(state.pools[slot, 0].double(), one_page(*rows, ape)[0], atol=1e-6, rtol=1e-6)


def test_bf16_weights_are_rounded_before_the_product() -> None:
    keys, gates, ape = torch.randn(64, 24).bfloat16(), torch.randn(64, 24).bfloat16(), torch.randn(4, 24)
    state = run({3: (keys, gates)}, ape, alone({3: 64}))
    weights = torch.softmax(gates.float().view(16, 4, 24) + ape, 1).bfloat16().double()
    exact = (weights * keys.double().view(16, 4, 24)).sum(1)
    assert same_bits(state.pools[3, :16], exact.to(torch.bfloat16))


def test_wrong_shapes_and_dtypes_are_refused_by_name() -> None:
    keys, ape, ring, pools = (
        torch.zeros(2, 8),
        torch.zeros(4, 8),
        torch.zeros(3, 64, 8),
        paged(torch.zeros(2, 9, 8), 16),
    )
    slots, positions = torch.zeros(2, dtype=torch.int64), torch.arange(2)
    with pytest.raises(ValueError, match="gates"):
        update_pools(keys, keys[:1], ape, ring, ring, pools, slots, positions)
    with pytest.raises(TypeError, match="ape"):
        update_pools(keys, keys, ape.bfloat16(), ring, ring, pools, slots, positions)
    with pytest.raises(TypeError, match="pools"):
        update_pools(keys, keys, ape, ring, ring, paged(torch.zeros(2, 9, 8).bfloat16(), 16), slots, positions)
    with pytest.raises(ValueError, match=r"pools\.table"):
        update_pools(keys, keys, ape, ring, ring, paged(torch.zeros(3, 9, 8), 16), slots, positions)
    with pytest.raises(ValueError, match="20 or more, got 16"):
        update_pools(keys, keys, ape, ring[:, :16], ring[:, :16], pools, slots, positions)
    with pytest.raises(ValueError, match="multiple of it"):
        update_pools(keys, keys, ape, ring[:, :63], ring[:, :63], pools, slots, positions)
