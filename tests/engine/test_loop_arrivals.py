"""The step loop: arrivals that share a forward, first tokens that leave early, requests that yield."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from support.loop_harness import LIMITS, Harness, build_request
from twinspark_engine.loop import Cancel, RequestCancelled, RequestFailed
from twinspark_engine.ranks.group import OnFirst
from twinspark_engine.scheduler.events import RequestEvent, TokensCommitted
from twinspark_engine.scheduler.plan import SlotOutput, StepPlan, StepResult

PATIENT = replace(LIMITS, arrival_wait_seconds=3600.0)


@pytest.fixture
def patient() -> Iterator[Harness]:
    """Waits for arrivals for longer than any test lasts."""
    harness = Harness(limits=PATIENT)
    harness.start()
    yield harness
    if harness.thread.is_alive():
        harness.stop()


def admitted_by_plan(harness: Harness) -> list[list[str]]:
    return [[a.request.request_id for a in plan.admissions] for plan in harness.group.plans if plan.admissions]


def test_arrivals_of_an_idle_time_are_admitted_together_as_soon_as_they_fill_the_slots(patient: Harness) -> None:
    for number, name in enumerate(("a", "b", "c"), start=1):
        patient.submit(build_request(name))
        patient.wait(lambda number=number: patient.loop.stats.requests_total == number, "it is known")  # type: ignore[misc]
    for name in ("a", "b", "c"):
        patient.heard.wait_end(name)
    assert admitted_by_plan(patient) == [["a", "b", "c"]]


def test_one_that_leaves_while_others_are_awaited_makes_no_plan(patient: Harness) -> None:
    patient.submit(build_request("a"))
    patient.loop.post(Cancel("a"))
    assert isinstance(patient.heard.wait_end("a"), RequestCancelled)
    patient.stop()
    assert patient.group.plans == []


def test_a_lone_request_is_run_when_the_wait_is_over() -> None:
    harness = Harness(limits=replace(LIMITS, arrival_wait_seconds=0.01))
    harness.start()
    harness.submit(build_request("a"))
    assert isinstance(harness.heard.wait_end("a"), RequestEvent)
    harness.stop()


def test_nobody_is_awaited_while_a_slot_is_busy(patient: Harness) -> None:
    patient.runner.hold_at = 3
    for name in ("a", "b", "c"):
        patient.submit(build_request(name, max_tokens=50 if name == "a" else 2))
    patient.heard.wait_end("c")
    patient.submit(build_request("d"))
    patient.wait(lambda: patient.loop.stats.requests_total >= 3, "all are known")
    patient.runner.released.set()
    patient.heard.wait_end("d")
    assert admitted_by_plan(patient) == [["a", "b", "c"], ["d"]]


def watch_first(harness: Harness, lost: bool = False) -> list[list[str]]:
    """Requests whose tokens were heard when the decode forward of a step began. lost: a rank goes in such a step."""
    heard: list[list[str]] = []
    execute = harness.runner.execute

    def watch(plan: StepPlan, on_first: OnFirst | None = None) -> StepResult:
        def tell(outputs: tuple[SlotOutput, ...]) -> None:
            assert on_first is not None
            harness.group.is_lost = lost
            while not harness.heard.batches.empty():
                harness.heard.outcomes += harness.heard.batches.get()
            on_first(outputs)
            new = [] if harness.heard.batches.empty() else list(harness.heard.batches.get())
            harness.heard.outcomes += new
            events = [o for o in new if isinstance(o, RequestEvent)]
            heard.append([e.request_id for e in events if isinstance(e.event, TokensCommitted)])

        return execute(plan, tell)

    harness.runner.execute = watch  # type: ignore[method-assign]
    return heard


def test_a_first_token_is_sent_before_the_slots_decode_and_is_counted_first() -> None:
    harness = Harness(step_seconds=0.002)
    heard = watch_first(harness)
    harness.start()
    harness.submit(build_request("decoder", max_tokens=400))
    harness.wait(lambda: harness.loop.stats.output_tokens_total > 3, "it decodes")
    harness.submit(build_request("new", 200, 3))
    harness.wait(lambda: heard != [], "a first token is told")
    harness.wait(lambda: harness.loop.stats.num_running == 1, "the new one has ended")
    harness.stop()
    assert heard == [["new"]]
    alone = Harness()
    alone.start()
    alone.submit(build_request("new", 200, 3))
    alone.heard.wait_end("new")
    alone.stop()
    assert harness.heard.tokens("new") == alone.heard.tokens("new")


def test_a_first_token_of_a_step_in_which_a_rank_was_lost_is_never_sent() -> None:
    harness = Harness(step_seconds=0.002)
    heard = watch_first(harness, lost=True)
    harness.start()
    harness.submit(build_request("decoder", max_tokens=400))
    harness.wait(lambda: harness.loop.stats.output_tokens_total > 3, "it decodes")
    harness.submit(build_request("new", 100, 3))
    for name in ("new", "decoder"):
        assert isinstance(harness.heard.wait_end(name), RequestFailed)
    harness.stop()
    assert (heard, harness.heard.tokens("new")) == ([], [])


def test_a_background_request_yields_to_a_foreground_one_and_is_counted() -> None:
    harness = Harness(step_seconds=0.002)
    harness.start()
    for name in ("x", "y", "z"):
        harness.submit(build_request(name, 5, 60, is_background=True))
    harness.wait(lambda: harness.loop.stats.output_tokens_total > 9, "they decode")
    harness.submit(build_request("urgent", 5, 3))
    for name in ("urgent", "x", "y", "z"):
        harness.heard.wait_end(name)
    harness.stop()
    assert harness.loop.stats.requests_yielded_total == 1
    assert [len(harness.heard.tokens(name)) for name in ("urgent", "x", "y", "z")] == [3, 60, 60, 60]
    tokens = harness.heard.tokens("z")
    assert tokens == harness.heard.tokens("x") == harness.heard.tokens("y"), (
        "equal prompts and seeds, one of them run twice"
    )
