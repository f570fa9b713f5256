"""Time for decode beside long prompts."""

from dataclasses import replace

import pytest

from support.scheduler_driver import Driver, build_request, run_alone
from twinspark_engine.scheduler.decode_share import DecodeShare
from twinspark_engine.scheduler.limits import SchedulerLimits

LIMITS = SchedulerLimits(3, 4096, 128, 256, 8, short_prompt_tokens=100, decode_share=0.5)


@pytest.mark.parametrize(("share", "num_decode_steps"), [(0.0, 0), (0.5, 9), (0.75, 29), (0.2, 2)])
def test_after_prefill_of_t_decode_gets_t_times_share_over_the_rest(share: float, num_decode_steps: int) -> None:
    account = DecodeShare(share)
    account.book(10_000, 1_000)
    steps = 0
    while account.is_owed:
        account.book(0, 1_000)
        steps += 1
    assert steps == num_decode_steps


def test_decode_saves_nothing_up_and_a_clock_that_stands_still_ends_the_wait() -> None:
    account = DecodeShare(0.5)
    account.book(0, 1_000_000)
    account.book(3, 0)
    assert account.is_owed
    account.book(0, 0)
    account.book(0, 0)
    assert not account.is_owed


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_a_share_outside_0_to_below_1_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match="must be 0 to below 1"):
        DecodeShare(share)


def build_driver(limits: SchedulerLimits = LIMITS) -> Driver:
    """One slot decodes; a prompt row takes 10 us, a decode step 320 us."""
    driver = Driver(limits)
    driver.runner.prompt_row_us, driver.runner.decode_step_us = 10, 320
    driver.submit(build_request("decoder", max_tokens=200))
    driver.step()
    return driver


def chunk_sizes(driver: Driver, num_steps: int) -> list[int]:
    return [sum(c.num_scheduled_tokens for c in driver.step().chunks) for _ in range(num_steps)]


def test_half_of_the_time_is_decoded_beside_a_long_prompt() -> None:
    driver = build_driver()
    driver.submit(build_request("long", 512))
    # 128 rows take 1,280 us: the time of four decode steps, one of them in the chunk's own step.
    assert chunk_sizes(driver, 13) == [128, 0, 0, 0] * 3 + [128]


def test_a_prompt_alone_owes_nothing() -> None:
    driver = build_driver()
    driver.scheduler.cancel("decoder")
    driver.submit(build_request("long", 768))
    assert chunk_sizes(driver, 3) == [256, 256, 256]


def test_what_is_owed_is_forgiven_when_the_last_slot_has_stopped_decoding() -> None:
    driver = build_driver()
    driver.submit(build_request("long", 768))
    assert chunk_sizes(driver, 2) == [128, 0]
    driver.scheduler.cancel("decoder")
    assert chunk_sizes(driver, 2) == [256, 256]


def test_a_short_prompt_is_computed_in_its_admission_step_whatever_is_owed_and_owes_nothing_itself() -> None:
    driver = build_driver()
    driver.submit(build_request("long", 512))
    assert chunk_sizes(driver, 2) == [128, 0]
    driver.submit(build_request("short", 90))
    plan = driver.step()
    assert [a.request.request_id for a in plan.admissions] == ["short"]
    assert [(c.slot, c.num_scheduled_tokens) for c in plan.chunks] == [(2, 90)]
    assert chunk_sizes(driver, 2) == [0, 128]


def test_a_long_prompt_takes_the_smaller_chunk_beside_a_short_one_whose_first_token_waits_for_it() -> None:
    driver = Driver(LIMITS)
    driver.submit(build_request("long", 900))
    assert chunk_sizes(driver, 1) == [256]
    driver.submit(build_request("short", 30, 1))
    plan = driver.step()
    assert [(c.slot, c.num_scheduled_tokens) for c in plan.chunks] == [(1, 30), (0, 128)]
    assert driver.tokens("short") != []
    assert chunk_sizes(driver, 1) == [256]


def test_times_change_when_a_chunk_runs_and_no_token() -> None:
    request = build_request("long", 700, 20)
    alone = run_alone(request, LIMITS).tokens("long")
    for row_us, step_us in ((0, 0), (7, 900), (1000, 1)):
        for share in (0.0, 0.3, 0.9):
            driver = build_driver(replace(LIMITS, decode_share=share))
            driver.runner.prompt_row_us, driver.runner.decode_step_us = row_us, step_us
            driver.submit(request)
            driver.run()
            assert driver.tokens("long") == alone
