"""Admission by memory: a start that would leave too little is refused, and a request beside others waits for memory."""

import pytest

from twinspark_engine.kv_cache.memory_rule import (
    HOST_BYTES_PER_TOKEN,
    AdmissionRule,
    LoadNeeds,
    MemoryBudgetError,
    check_load,
)

NEEDS = LoadNeeds(slot_bytes=100, num_slots=4, block_bytes=10, num_blocks=20)


def test_a_load_needs_its_blocks_its_slots_and_the_trash_row() -> None:
    assert NEEDS.total_bytes == 5 * 100 + 20 * 10


def test_a_load_that_leaves_the_reserve_is_taken_and_one_byte_less_is_refused() -> None:
    check_load(NEEDS, free_bytes=1000, reserve_bytes=300)
    with pytest.raises(
        MemoryBudgetError, match=r"need 700 bytes; 999 are free and 300 must stay so\. 3 slots would fit"
    ):
        check_load(NEEDS, free_bytes=999, reserve_bytes=300)


def test_a_refusal_names_fewer_blocks_where_not_even_one_slot_fits() -> None:
    with pytest.raises(MemoryBudgetError, match=r"Fewer blocks \(kv_blocks\)"):
        check_load(NEEDS, free_bytes=500, reserve_bytes=300)


def test_a_request_beside_others_must_leave_free_what_is_set() -> None:
    rule = AdmissionRule(1000, lambda num_tokens: 3 * num_tokens)
    bound = (3 + HOST_BYTES_PER_TOKEN) * 10
    assert rule.can_admit(10, 1000 + bound)
    assert not rule.can_admit(10, 1000 + bound - 1)


def test_the_scratch_is_one_that_only_grows() -> None:
    rule = AdmissionRule(0, lambda num_tokens: 3 * num_tokens)
    rule.book(100)
    assert rule.growth_bytes(100) == 100 * HOST_BYTES_PER_TOKEN
    assert rule.growth_bytes(50) == 50 * HOST_BYTES_PER_TOKEN, "it is there already"
    assert rule.growth_bytes(110) == 110 * HOST_BYTES_PER_TOKEN + 30
    rule.book(50)
    assert rule.growth_bytes(110) == 110 * HOST_BYTES_PER_TOKEN + 30, "it does not shrink"
