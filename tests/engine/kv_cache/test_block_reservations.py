"""Reservations of blocks: lowest free first, a function of what is free, and no block twice or lost."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinspark_engine.kv_cache import block_reservations
from twinspark_engine.kv_cache.block_reservations import (
    FIRST_BLOCK,
    BlockCountError,
    BlockReservations,
)
from twinspark_kernels import paged


def test_blocks_are_those_of_the_kernels() -> None:
    assert (block_reservations.BLOCK_TOKENS, block_reservations.FIRST_BLOCK) == (paged.BLOCK_TOKENS, paged.FIRST_BLOCK)
    assert {paged.NULL_BLOCK, paged.TRASH_BLOCK} == set(range(FIRST_BLOCK))


def test_a_request_gets_the_lowest_free_blocks_for_all_its_tokens() -> None:
    reservations = BlockReservations(10, 3)
    assert reservations.reserve(1, 1) == (2,)
    assert reservations.reserve(0, 513) == (3, 4, 5)
    assert reservations.reserve(2, 512) == (6, 7)
    assert not reservations.free_slots
    reservations.release(1)
    reservations.release(2)
    assert reservations.free_slots == (1, 2)
    assert reservations.num_free_blocks == 7
    assert reservations.reserve(2, 600) == (2, 6, 7)
    assert reservations.table(2) == (2, 6, 7)


@pytest.mark.parametrize(("num_tokens", "num_blocks"), [(1, 1), (256, 1), (257, 2), (1 << 20, 4096)])
def test_a_block_holds_256_tokens(num_tokens: int, num_blocks: int) -> None:
    assert BlockReservations.blocks_for(num_tokens) == num_blocks


def test_in_a_pool_of_4097_blocks_a_short_request_beside_the_longest_gets_the_last_block() -> None:
    reservations = BlockReservations(4097, 2)
    assert reservations.reserve(0, 1 << 20)[-1] == FIRST_BLOCK + 4095
    assert reservations.can_reserve(256)
    assert not reservations.can_reserve(257)
    assert reservations.reserve(1, 100) == (FIRST_BLOCK + 4096,)
    assert not reservations.can_reserve(1)


def test_what_exceeds_the_pool_can_never_be_reserved() -> None:
    reservations = BlockReservations(2, 2)
    assert reservations.can_ever_reserve(512)
    assert not reservations.can_ever_reserve(513)
    assert not reservations.can_ever_reserve(0)
    with pytest.raises(ValueError, match="513 tokens need 3 blocks of 2 free"):
        reservations.reserve(0, 513)
    assert reservations.num_free_blocks == 2
    assert reservations.free_slots == (0, 1)


def test_slots_in_use_and_free_slots_are_not_mixed_up() -> None:
    reservations = BlockReservations(4, 2)
    reservations.reserve(0, 5)
    with pytest.raises(ValueError, match="slot 0 is in use"):
        reservations.reserve(0, 5)
    with pytest.raises(ValueError, match="slot 1 is free"):
        reservations.release(1)
    with pytest.raises(ValueError, match="slot 1 is free"):
        reservations.table(1)


def test_a_block_that_is_lost_or_given_out_twice_is_found() -> None:
    reservations = BlockReservations(4, 2)
    reservations.reserve(0, 600)
    reservations.check()
    lost = reservations._free.pop()
    with pytest.raises(BlockCountError, match="3 held and 0 free of 4 blocks"):
        reservations.check()
    reservations._free.append(lost)
    reservations.check()
    reservations._free[0] = FIRST_BLOCK
    with pytest.raises(BlockCountError):
        reservations.check()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 2000)), max_size=60), st.randoms())
def test_books_agree_after_any_history_and_a_second_rank_comes_to_the_same_tables(
    history: list[tuple[int, int]], order: random.Random
) -> None:
    first, second = BlockReservations(12, 4), BlockReservations(12, 4)
    held: dict[int, int] = {}
    for slot, num_tokens in history:
        if slot in held:
            # The other rank gives back what ends together in another order.
            ending = list(held)
            for ended in ending:
                first.release(ended)
            order.shuffle(ending)
            for ended in ending:
                second.release(ended)
            held.clear()
        elif first.can_reserve(num_tokens):
            table = first.reserve(slot, num_tokens)
            assert second.reserve(slot, num_tokens) == table
            assert list(table) == sorted(table)
            held[slot] = first.blocks_for(num_tokens)
        first.check()
        assert first.num_free_blocks == second.num_free_blocks == 12 - sum(held.values())
        assert first.free_slots == tuple(slot for slot in range(4) if slot not in held)
