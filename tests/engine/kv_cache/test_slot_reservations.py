"""Reservations by slot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinspark_engine.kv_cache.slot_reservations import SlotReservations


def test_the_lowest_free_slot_is_given_out() -> None:
    reservations = SlotReservations(3, 100)
    assert [reservations.reserve(10) for _ in range(3)] == [0, 1, 2]
    assert not reservations.can_reserve(1)
    reservations.release(1)
    assert reservations.reserve(5) == 1
    assert reservations.num_reserved_tokens == 25


def test_what_exceeds_the_context_can_never_be_reserved() -> None:
    reservations = SlotReservations(1, 100)
    assert reservations.can_ever_reserve(100)
    assert not reservations.can_ever_reserve(101)
    with pytest.raises(ValueError, match="101 tokens do not fit"):
        reservations.reserve(101)


def test_a_free_slot_cannot_be_released() -> None:
    with pytest.raises(ValueError, match="slot 0 is free"):
        SlotReservations(1, 100).release(0)


@given(st.lists(st.integers(0, 3)))
def test_counts_agree_after_any_history(history: list[int]) -> None:
    reservations = SlotReservations(4, 100)
    held: set[int] = set()
    for slot in history:
        if slot in held:
            reservations.release(slot)
            held.remove(slot)
        else:
            held.add(reservations.reserve(7))
        assert reservations.num_free_slots == 4 - len(held)
        assert reservations.num_reserved_tokens == 7 * len(held)
