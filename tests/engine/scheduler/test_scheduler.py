"""The scheduler, step by step, without tensors or clock."""

from dataclasses import replace

import pytest

from support.hash_runner import HashRunner
from support.scheduler_driver import LIMITS, Driver, build_request
from twinspark_engine.errors import ContextTooLongError, QueueFullError
from twinspark_engine.request import FinishReason, Limits, Request, SamplingParams
from twinspark_engine.scheduler.events import Admitted, Finished, PromptLogprobsKnown, RequestEvent, TokensCommitted
from twinspark_engine.scheduler.limits import SchedulerLimits
from twinspark_engine.scheduler.plan import DecodeWindow, PrefillChunk
from twinspark_engine.scheduler.scheduler import Scheduler


def test_a_short_prompt_is_computed_in_its_admission_step_and_decodes_from_the_next() -> None:
    driver = Driver()
    driver.submit(build_request("a", max_tokens=3))
    first = driver.step()
    assert [a.slot for a in first.admissions] == [0]
    assert first.chunks == (PrefillChunk(0, 0, 3),)
    assert first.windows == ()
    assert driver.step().windows == (DecodeWindow(0),)


def test_events_come_in_the_order_of_the_stream_and_carry_counts_and_times() -> None:
    driver = Driver()
    driver.now = 5.0
    driver.scheduler.submit(build_request("a", max_tokens=3), 3.5)
    driver.run()
    kinds = [type(e.event) for e in driver.events]
    assert kinds == [Admitted, TokensCommitted, TokensCommitted, TokensCommitted, Finished]
    finished = driver.events[-1].event
    assert isinstance(finished, Finished)
    assert (finished.reason, finished.prompt_tokens, finished.output_tokens) == (FinishReason.LENGTH, 3, 3)
    assert (finished.queue_seconds, finished.prefill_seconds, finished.decode_seconds) == (1.5, 1.0, 2.0)
    assert finished.num_rounds == 2


def test_chunks_end_at_multiples_of_64_or_at_the_prompt_end_and_fill_the_forward() -> None:
    driver = Driver()
    driver.submit(build_request("long", 700))
    assert [driver.step().chunks[0] for _ in range(3)] == [
        PrefillChunk(0, 0, 256),
        PrefillChunk(0, 256, 256),
        PrefillChunk(0, 512, 188),
    ]


def test_a_prompt_beside_a_decoder_takes_smaller_chunks_and_the_decoder_runs_in_every_step() -> None:
    driver = Driver()
    driver.submit(build_request("decoder", max_tokens=20))
    driver.step()
    driver.submit(build_request("prompt", 700))
    plans = [driver.step() for _ in range(6)]
    assert [p.chunks[0].num_scheduled_tokens for p in plans] == [128, 128, 128, 128, 128, 60]
    assert all(DecodeWindow(0) in p.windows for p in plans)


def test_prompts_share_a_forward_when_they_fit_and_the_shortest_goes_first() -> None:
    driver = Driver()
    driver.submit(build_request("long", 400))
    driver.submit(build_request("short", 50))
    plan = driver.step()
    assert plan.chunks == (PrefillChunk(1, 0, 50), PrefillChunk(0, 0, 192))


def test_a_prompt_passed_over_eight_times_goes_next() -> None:
    limits = SchedulerLimits(2, 1024, 64, 64, 100)
    driver = Driver(limits)
    driver.submit(build_request("long", 640, 1))
    for number in range(20):
        driver.submit(build_request(f"short{number}", 64, 1))
    turns = [driver.step().chunks[0].slot for _ in range(9)]
    assert turns == [1] * 8 + [0]


def test_a_waiting_request_is_never_overtaken() -> None:
    driver = Driver()
    names = ["a", "bb", "ccc", "dddd", "eeeee"]
    for name in names:
        driver.submit(build_request(name))
    driver.run()
    assert [e.request_id for e in driver.events if isinstance(e.event, Admitted)] == names


@pytest.mark.parametrize("queue_limit", [0, 2])
def test_the_queue_limit_counts_only_requests_for_which_no_slot_is_free(queue_limit: int) -> None:
    driver = Driver(SchedulerLimits(2, 1024, 128, 256, queue_limit))
    for number in range(2 + queue_limit):
        driver.submit(build_request(f"r{number}"))
    with pytest.raises(QueueFullError):
        driver.submit(build_request("more"))
    driver.step()
    with pytest.raises(QueueFullError):
        driver.submit(build_request("more"))
    driver.run()
    driver.submit(build_request("more"))


def test_an_impossible_request_is_refused_at_once_and_one_that_just_fits_runs() -> None:
    driver = Driver()
    with pytest.raises(ContextTooLongError, match="1000 prompt tokens and max_tokens 25 exceed the context of 1024"):
        driver.submit(build_request("a", 1000, 25))
    driver.submit(build_request("a", 1000, 24))
    driver.run()
    assert len(driver.tokens("a")) == 24


@pytest.mark.parametrize("num_steps_before", [0, 1, 3])
def test_cancel_ends_a_request_in_queue_prefill_and_decode_and_frees_its_slot(num_steps_before: int) -> None:
    driver = Driver()
    driver.submit(build_request("a", 300, 50))
    for _ in range(num_steps_before):
        driver.step()
    assert driver.scheduler.cancel("a")
    assert not driver.scheduler.cancel("a")
    num_events = len(driver.events)
    plan = driver.step()
    assert plan.cancelled_slots == ((0,) if num_steps_before else ())
    assert len(driver.events) == num_events
    assert (driver.scheduler.num_running, driver.scheduler.num_waiting, driver.scheduler.has_work) == (0, 0, False)


def test_a_cancelled_slot_is_given_out_again_in_the_same_step() -> None:
    driver = Driver(SchedulerLimits(1, 1024, 128, 256, 3))
    driver.submit(build_request("a", 3, 50))
    driver.step()
    driver.submit(build_request("bb"))
    driver.scheduler.cancel("a")
    plan = driver.step()
    assert plan.cancelled_slots == (0,)
    assert [a.request.request_id for a in plan.admissions] == ["bb"]


def test_max_tokens_0_computes_the_prompt_and_reports_its_log_probabilities() -> None:
    driver = Driver()
    base = build_request("echo", 300, 0)
    driver.submit(Request("echo", base.prompt_token_ids, base.sampling, base.limits, num_prompt_top_logprobs=0))
    driver.run()
    known = [e.event for e in driver.events if isinstance(e.event, PromptLogprobsKnown)]
    assert [(k.start, len(k.tokens)) for k in known] == [(1, 256), (257, 43)]
    assert driver.tokens("echo") == []
    finished = driver.events[-1].event
    assert isinstance(finished, Finished)
    assert finished.output_tokens == 0


def test_prior_output_tokens_count_as_output_in_usage() -> None:
    driver = Driver()
    request = Request("a", (1, 2, 3, 4, 5), SamplingParams(1), Limits(2, ignore_eos=True), num_prior_output_tokens=2)
    driver.submit(request)
    driver.run()
    finished = driver.events[-1].event
    assert isinstance(finished, Finished)
    assert (finished.prompt_tokens, finished.output_tokens) == (3, 4)


def test_drop_all_returns_every_request_once_and_leaves_an_empty_scheduler() -> None:
    driver = Driver()
    for name in ("a", "bb", "ccc"):
        driver.submit(build_request(name, 300, 50))
    driver.step()
    driver.scheduler.cancel("bb")
    driver.scheduler.plan(driver.now)
    assert sorted(driver.scheduler.drop_all()) == ["a", "ccc"]
    assert not driver.scheduler.has_work
    assert driver.scheduler.num_in_flight == 0, "plans that were not executed are forgotten"
    driver.scheduler.start_epoch(7)
    driver.submit(build_request("a"))
    plan = driver.scheduler.plan(0.0)
    assert (plan.epoch, plan.step, plan.cancelled_slots) == (7, 0, ())


def test_an_idle_scheduler_makes_an_empty_plan_that_takes_no_step_number() -> None:
    driver = Driver()
    assert driver.step().is_empty
    driver.submit(build_request("a"))
    assert driver.step().step == 0


def test_a_plan_made_ahead_of_the_result_that_ends_its_request_changes_nothing() -> None:
    scheduler, runner = Scheduler(LIMITS), HashRunner(num_slots=2)
    request = build_request("a", max_tokens=40)
    alone = Driver()
    alone.submit(request)
    alone.run()
    stop = alone.tokens("a")[5]
    stopping = Request("a", request.prompt_token_ids, request.sampling, Limits(40, frozenset({stop}), ignore_eos=True))
    scheduler.submit(stopping, 0.0)
    plans = [scheduler.plan(0.0)]
    events: list[RequestEvent] = []
    while plans:
        if scheduler.is_steady:
            ahead = scheduler.plan(0.0)
            plans += [] if ahead.is_empty else [ahead]
        events += scheduler.apply(runner.execute(plans.pop(0)), 0.0)
        if not plans and scheduler.has_work:
            plans = [scheduler.plan(0.0)]
    tokens = [t for e in events if isinstance(e.event, TokensCommitted) for t in e.event.token_ids]
    assert tokens == alone.tokens("a")[:6]
    assert sum(isinstance(e.event, Finished) for e in events) == 1
    assert scheduler.num_in_flight == 0


def test_a_first_arrival_waits_for_others_only_while_no_slot_is_busy_and_slots_remain() -> None:
    driver = Driver(replace(LIMITS, arrival_wait_seconds=0.01))
    assert driver.scheduler.find_wait(0.0) == 0.0
    driver.submit(build_request("a"))
    assert driver.scheduler.find_wait(0.004) == pytest.approx(0.006)
    assert driver.scheduler.find_wait(0.02) == 0.0
    driver.submit(build_request("bb"))
    assert driver.scheduler.find_wait(0.004) == 0.0, "two slots, two requests"
    driver.scheduler.cancel("bb")
    driver.step()
    driver.submit(build_request("ccc"))
    assert driver.scheduler.find_wait(driver.now) == 0.0, "a slot is busy"
