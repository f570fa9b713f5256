"""Who is admitted, and who yields for that: the decision by itself, and its effect on the streams."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hash_runner import HashRunner
from support.scheduler_driver import Driver, build_request, run_alone
from twinspark_engine.request import Request
from twinspark_engine.scheduler.admission import AdmissionDecision, Claim, Holding, Room, decide_admissions
from twinspark_engine.scheduler.events import Admitted, Finished, PromptLogprobsKnown, TokensCommitted
from twinspark_engine.scheduler.limits import SchedulerLimits
from twinspark_engine.scheduler.running import Delivery, RunningRequest
from twinspark_engine.scheduler.scheduler import Scheduler
from twinspark_engine.scheduler.waiting import WaitingRequest

LIMITS = SchedulerLimits(2, 1024, 128, 256, 8)
FOREGROUND, BACKGROUND = False, True


def claim(name: str, num_blocks: int, is_background: bool) -> Claim:
    return Claim(WaitingRequest(build_request(name, is_background=is_background), Delivery(0.0)), num_blocks)


def holding(turn: int, num_blocks: int) -> Holding:
    request = build_request(f"held{turn}", is_background=True)
    return Holding(RunningRequest(request, turn, Delivery(0.0), turn), num_blocks)


def names(decision: AdmissionDecision) -> tuple[list[int], list[str]]:
    return [r.turn for r in decision.yields], [w.request.request_id for w in decision.admitted]


Case = tuple[Sequence[Claim], Room, Sequence[Holding]]
CASES: dict[str, tuple[Case, tuple[list[int], list[str]]]] = {
    "nobody overtakes one that lacks blocks": (
        ([claim("big", 9, FOREGROUND), claim("small", 1, FOREGROUND)], Room(2, 8), []),
        ([], []),
    ),
    "nor does background overtake foreground": (
        ([claim("big", 9, FOREGROUND), claim("small", 1, BACKGROUND)], Room(2, 8), []),
        ([], []),
    ),
    "the background request admitted last yields its slot": (
        ([claim("a", 1, FOREGROUND)], Room(0, 8), [holding(3, 1), holding(5, 1), holding(4, 1)]),
        ([5], ["a"]),
    ),
    "as many yield as it takes": (
        ([claim("a", 4, FOREGROUND)], Room(1, 1), [holding(3, 2), holding(5, 1), holding(4, 2)]),
        ([5, 4], ["a"]),
    ),
    "none yields where all would not be enough": (
        ([claim("a", 9, FOREGROUND)], Room(1, 1), [holding(3, 2), holding(5, 1)]),
        ([], []),
    ),
    "none yields to background": (([claim("a", 1, BACKGROUND)], Room(0, 8), [holding(3, 1)]), ([], [])),
    "background waits in a step in which one yielded": (
        ([claim("a", 4, FOREGROUND), claim("b", 1, BACKGROUND)], Room(0, 0), [holding(3, 3), holding(4, 3)]),
        ([4, 3], ["a"]),
    ),
    "background takes what foreground leaves": (
        ([claim("a", 1, FOREGROUND), claim("b", 1, BACKGROUND)], Room(2, 2), []),
        ([], ["a", "b"]),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_admissions(name: str) -> None:
    (line, room, background), expected = CASES[name]
    assert names(decide_admissions(line, room, background)) == expected


def test_nobody_yields_to_a_request_that_lacks_memory_and_nobody_overtakes_it() -> None:
    line = [claim("a", 1, FOREGROUND), claim("b", 1, FOREGROUND)]
    asked: list[tuple[str, int]] = []

    def take_memory(waiting: WaitingRequest, num_beside: int) -> bool:
        asked.append((waiting.request.request_id, num_beside))
        return False

    decision = decide_admissions(line, Room(0, 8), [holding(3, 1), holding(4, 1)], 3, take_memory)
    assert (names(decision), asked) == (([], []), [("a", 2)])


@given(
    st.lists(st.tuples(st.integers(1, 6), st.booleans()), max_size=6),
    st.integers(0, 3),
    st.integers(0, 6),
    st.lists(st.integers(1, 4), max_size=4),
)
def test_what_is_admitted_always_fits_and_the_next_in_line_does_not(
    wishes: list[tuple[int, bool]], num_slots: int, num_blocks: int, held: list[int]
) -> None:
    line = [claim(f"r{i}", blocks, background) for i, (blocks, background) in enumerate(wishes)]
    line.sort(key=lambda c: c.waiting.request.is_background)
    decision = decide_admissions(line, Room(num_slots, num_blocks), [holding(i, b) for i, b in enumerate(held)])
    count = len(decision.admitted)
    assert list(decision.admitted) == [c.waiting for c in line[:count]]
    slots = num_slots + len(decision.yields) - count
    blocks = num_blocks + sum(held[r.turn] for r in decision.yields) - sum(c.num_blocks for c in line[:count])
    assert slots >= 0
    assert blocks >= 0
    if count < len(line) and not line[count].waiting.request.is_background:
        kept = [held[i] for i in range(len(held)) if i not in {r.turn for r in decision.yields}]
        assert slots + len(kept) == 0 or blocks + sum(kept) < line[count].num_blocks


def driver_with(*requests: Request, num_blocks: int = 0) -> Driver:
    driver = Driver(replace(LIMITS, num_blocks=num_blocks))
    for request in requests:
        driver.submit(request)
    return driver


def test_a_request_that_yields_is_run_again_and_its_caller_hears_every_token_once() -> None:
    background = build_request("later", 300, 12, is_background=True, num_prompt_top_logprobs=0)
    driver = driver_with(background, build_request("other", 5, 40))
    for _ in range(7):
        driver.step()
    heard = driver.tokens("later")
    assert 0 < len(heard) < 12
    driver.submit(build_request("urgent", 5, 6))
    plan = driver.step()
    assert (plan.cancelled_slots, [a.slot for a in plan.admissions]) == ((1,), [1])
    assert (driver.scheduler.num_waiting, driver.scheduler.num_yields) == (1, 1)
    assert driver.tokens("later") == heard
    driver.run()
    own = [e.event for e in driver.events if e.request_id == "later"]
    alone = run_alone(background, LIMITS)
    assert driver.tokens("later") == alone.tokens("later")
    assert [type(event) for event in own].count(Admitted) == 1
    known = [event for event in own if isinstance(event, PromptLogprobsKnown)]
    assert [index for k in known for index in range(k.start, k.start + len(k.tokens))] == list(range(1, 300))
    finished = own[-1]
    assert isinstance(finished, Finished)
    assert (finished.prompt_tokens, finished.output_tokens, finished.num_rounds) == (300, 12, 11)
    assert driver.events.index(next(e for e in driver.events if e.event is finished)) > max(
        i for i, e in enumerate(driver.events) if e.request_id == "urgent"
    )


def test_output_tokens_of_a_request_that_yielded_are_decoded_again_and_never_prefilled() -> None:
    driver = driver_with(build_request("later", 70, 20, is_background=True), build_request("other", 5, 60))
    for _ in range(5):
        driver.step()
    driver.submit(build_request("urgent", 5, 3))
    rows, windows = 0, 0
    while driver.scheduler.has_work:
        plan = driver.step()
        again = {s for s, held in driver.runner.slots.items() if held.request.request_id == "later"}
        rows += sum(c.num_scheduled_tokens for c in plan.chunks if c.slot in again)
        windows += sum(w.slot in again for w in plan.windows)
    assert (rows, windows) == (70, 18), "the whole prompt, and each token after the first (the last ends the request)"


def test_a_yield_in_every_phase_changes_no_token() -> None:
    background = build_request("later", 300, 8, is_background=True)
    alone = run_alone(background, LIMITS).tokens("later")
    for num_steps in range(1, 12):
        driver = driver_with(background, build_request("other", 5, 100))
        for _ in range(num_steps):
            driver.step()
        for name in ("urgent", "next"):
            driver.submit(build_request(name, 90, 5))
        driver.run()
        assert driver.tokens("later") == alone


def test_a_yielded_request_keeps_its_place_before_later_background_ones_and_can_be_cancelled() -> None:
    first, second = (build_request(name, 5, 30, is_background=True) for name in ("first", "second"))
    driver = driver_with(build_request("other", 5, 100), first, second)
    driver.step()
    driver.submit(build_request("urgent", 5, 3))
    driver.step()
    assert driver.scheduler.num_waiting == 2
    admitted: list[str] = []
    while not admitted:
        admitted = [a.request.request_id for a in driver.step().admissions]
    assert admitted == ["first"]
    driver.submit(build_request("urgent2", 5, 3))
    driver.step()
    assert driver.scheduler.cancel("first")
    assert not driver.scheduler.cancel("first")
    driver.run()
    assert len(driver.tokens("second")) == 30


def test_background_yields_blocks_too() -> None:
    driver = driver_with(build_request("later", 500, 12, is_background=True), num_blocks=4)
    driver.step()
    driver.submit(build_request("big", 600, 12))
    plan = driver.step()
    assert plan.cancelled_slots == (0,)
    assert [a.request.request_id for a in plan.admissions] == ["big"]
    driver.run()
    assert len(driver.tokens("later")) == 12
    assert driver.scheduler.num_used_blocks == 0


def test_a_foreground_request_counts_background_slots_as_free_where_the_queue_is_full() -> None:
    driver = Driver(SchedulerLimits(1, 1024, 128, 256, 0))
    driver.submit(build_request("later", 5, 30, is_background=True))
    driver.step()
    driver.submit(build_request("urgent", 5, 3))
    driver.run()
    assert (len(driver.tokens("urgent")), len(driver.tokens("later"))) == (3, 30)


def test_a_request_that_yields_while_its_last_step_is_in_flight_is_run_again_and_ends_once() -> None:
    limits = SchedulerLimits(1, 1024, 128, 256, 8)
    scheduler, runner = Scheduler(limits), HashRunner(num_slots=1)
    background = build_request("later", 5, 3, is_background=True)
    scheduler.submit(background, 0.0)
    plans = [scheduler.plan(0.0), scheduler.plan(0.0), scheduler.plan(0.0)]
    scheduler.submit(build_request("urgent", 5, 3), 0.0)
    plans.append(scheduler.plan(0.0))
    assert plans[3].cancelled_slots == (0,)
    events = scheduler.take_admitted()
    while plans:
        events += scheduler.apply(runner.execute(plans.pop(0)), 0.0)
        if not plans and scheduler.has_work:
            plans = [scheduler.plan(0.0)]
            events += scheduler.take_admitted()
    ends = [e.request_id for e in events if isinstance(e.event, Finished)]
    assert ends == ["urgent", "later"]
    tokens = [e.event.token_ids[0] for e in events if e.request_id == "later" and isinstance(e.event, TokensCommitted)]
    assert tokens == run_alone(background, limits).tokens("later")
