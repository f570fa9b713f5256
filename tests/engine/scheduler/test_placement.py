"""Which free slot a request gets."""

from collections.abc import Sequence

import pytest

from support.scheduler_driver import Driver, build_request
from twinspark_engine.request import Request
from twinspark_engine.scheduler.limits import SchedulerLimits
from twinspark_engine.scheduler.placement import SlotCandidate, StoredPrefix, choose_slot

LIMITS = SchedulerLimits(4, 1024, 128, 256, 8)


@pytest.mark.parametrize(
    ("candidates", "chosen"),
    [
        ([(0, 64, 9, 0), (1, 128, 0, 9)], 1),
        ([(0, 64, 2, 0), (1, 64, 3, 9)], 1),
        ([(0, 64, 3, 9), (1, 64, 3, 8)], 1),
        ([(2, 0, 0, -1), (1, 0, 0, -1)], 1),
    ],
)
def test_longest_prefix_then_most_blocks_then_least_recent_then_lowest(
    candidates: Sequence[tuple[int, int, int, int]], chosen: int
) -> None:
    free = [SlotCandidate(slot, StoredPrefix(tokens, blocks), turn) for slot, tokens, blocks, turn in candidates]
    assert choose_slot(free) == choose_slot(reversed(free)) == chosen


def place(driver: Driver, request: Request) -> int:
    driver.submit(request)
    slot = driver.step().admissions[0].slot
    driver.run()
    return slot


def test_one_prompt_sent_alone_visits_every_slot_and_gets_the_same_tokens_in_each() -> None:
    driver = Driver(LIMITS)
    assert [place(driver, build_request("a")) for _ in range(6)] == [0, 1, 2, 3, 0, 1]
    assert driver.scheduler.num_admissions == [2, 2, 1, 1]
    tokens = driver.tokens("a")
    assert [tokens[i : i + 4] for i in range(0, 24, 4)] == [tokens[:4]] * 6


def test_a_slot_whose_stored_prefix_is_longest_is_taken_before_one_that_rested_longer() -> None:
    def find_prefix(request: Request, slot: int) -> StoredPrefix:
        return StoredPrefix(64 * (slot == 1 and request.request_id == "b"))

    driver = Driver(LIMITS, find_prefix=find_prefix)
    assert [place(driver, build_request(name)) for name in ("a", "a", "b", "a", "b")] == [0, 1, 1, 2, 1]


@pytest.mark.parametrize("num_slots", [1, 16])
def test_one_to_sixteen_slots_run_at_once(num_slots: int) -> None:
    driver = Driver(SchedulerLimits(num_slots, 1024, 128, 256, 32))
    for number in range(num_slots + 1):
        driver.submit(build_request(f"r{number}", max_tokens=9))
    assert [admission.slot for admission in driver.step().admissions] == list(range(num_slots))
    assert driver.scheduler.num_waiting == 1
    driver.run()
    assert all(len(driver.tokens(f"r{number}")) == 9 for number in range(num_slots + 1))
