"""Admission by blocks and by memory: who waits, for what, and that nobody overtakes."""

from dataclasses import replace

import pytest

from support.hash_runner import HashRunner
from twinspark_engine.errors import ContextTooLongError
from twinspark_engine.kv_cache.block_reservations import BlockCountError
from twinspark_engine.kv_cache.memory_rule import HOST_BYTES_PER_TOKEN, AdmissionRule
from twinspark_engine.request import Limits, Request, SamplingParams
from twinspark_engine.scheduler.limits import SchedulerLimits
from twinspark_engine.scheduler.scheduler import Scheduler

LIMITS = SchedulerLimits(
    num_slots=3, context_tokens=1024, chunk_tokens_beside_decoders=64, chunk_tokens_alone=128, queue_limit=8
)
ADMIT_BYTES = 1000


def request_of(name: str, num_tokens: int) -> Request:
    """Reserves so many tokens, four of them output."""
    return Request(name, tuple(range(1, num_tokens - 3)), SamplingParams(1), Limits(4, ignore_eos=True))


def admitted(scheduler: Scheduler, free_bytes: int | None = None) -> list[str]:
    scheduler.plan(0.0, free_bytes=free_bytes)
    return [event.request_id for event in scheduler.take_admitted()]


def test_who_finds_too_few_blocks_waits_and_a_smaller_one_behind_does_not_overtake() -> None:
    scheduler = Scheduler(replace(LIMITS, num_blocks=5))
    for name, num_tokens in (("a", 512), ("b", 1024), ("c", 10)):
        scheduler.submit(request_of(name, num_tokens), 0.0)
    assert admitted(scheduler) == ["a"], "b needs four blocks of three, and c came later"
    assert scheduler.num_used_blocks == 2
    scheduler.cancel("a")
    assert admitted(scheduler) == ["b", "c"]
    assert scheduler.num_used_blocks == 5


def test_a_request_that_the_empty_pool_could_not_hold_is_refused_at_once() -> None:
    scheduler = Scheduler(replace(LIMITS, num_blocks=3))
    with pytest.raises(ContextTooLongError):
        scheduler.submit(request_of("a", 769), 0.0)
    scheduler.submit(request_of("b", 768), 0.0)
    with pytest.raises(ContextTooLongError):
        Scheduler(LIMITS).submit(request_of("c", 1025), 0.0)


def test_beside_others_a_request_waits_until_enough_memory_is_free() -> None:
    scheduler = Scheduler(LIMITS, AdmissionRule(ADMIT_BYTES, lambda _: 0))
    for name in "abc":
        scheduler.submit(request_of(name, 50), 0.0)
    enough = ADMIT_BYTES + 50 * HOST_BYTES_PER_TOKEN
    assert admitted(scheduler, enough - 1) == ["a"], "alone it needs nothing free"
    assert admitted(scheduler, enough - 1) == []
    assert admitted(scheduler, enough) == ["b", "c"]


def test_alone_a_request_runs_whatever_is_free() -> None:
    scheduler = Scheduler(LIMITS, AdmissionRule(ADMIT_BYTES, lambda _: 10**9))
    scheduler.submit(request_of("a", 50), 0.0)
    assert admitted(scheduler, 0) == ["a"]


def test_what_an_earlier_request_made_the_scratch_is_not_asked_for_again() -> None:
    scheduler = Scheduler(LIMITS, AdmissionRule(ADMIT_BYTES, lambda num_tokens: 100 * num_tokens))
    for name, num_tokens in (("a", 200), ("b", 100)):
        scheduler.submit(request_of(name, num_tokens), 0.0)
    assert admitted(scheduler, ADMIT_BYTES + 100 * HOST_BYTES_PER_TOKEN) == ["a", "b"]


def test_a_runner_that_counts_other_blocks_is_found() -> None:
    scheduler, runner = Scheduler(LIMITS), HashRunner(num_slots=3)
    scheduler.submit(request_of("a", 300), 0.0)
    result = runner.execute(scheduler.plan(0.0))
    scheduler.apply(replace(result, num_free_blocks=10), 0.0)
    result = runner.execute(scheduler.plan(0.0))
    with pytest.raises(BlockCountError, match="the scheduler counts 10 free blocks, the runner 9"):
        scheduler.apply(replace(result, num_free_blocks=9), 0.0)
