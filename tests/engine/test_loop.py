"""The step loop with a hash runner: in its own thread, as in the engine."""

import queue
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from support.loop_harness import ACCOUNT, Harness, build_request, is_end
from support.waiting import PATIENCE_SECONDS, wait_until
from twinspark_engine.errors import RanksDifferError
from twinspark_engine.loop import (
    Cancel,
    MeasureMemory,
    Outcome,
    RequestCancelled,
    RequestFailed,
    Wake,
)
from twinspark_engine.memory import MemoryAccount
from twinspark_engine.ranks.group import OnFirst
from twinspark_engine.ranks.transport import TransportError
from twinspark_engine.request import ConstraintFailure
from twinspark_engine.scheduler.events import RequestEvent, TokensCommitted
from twinspark_engine.scheduler.plan import StepPlan
from twinspark_engine.stats import EngineState


@pytest.fixture
def harness() -> Iterator[Harness]:
    harness = Harness()
    harness.start()
    yield harness
    if harness.thread.is_alive():
        harness.stop()


def test_a_request_runs_to_its_end_and_the_books_count_it(harness: Harness) -> None:
    harness.submit(build_request("a", 200, 6))
    assert isinstance(harness.heard.wait_end("a"), RequestEvent)
    harness.stop()
    stats = harness.loop.stats
    assert (stats.requests_total, stats.prompt_tokens_total, stats.output_tokens_total) == (1, 200, 6)
    assert (stats.steps_total, stats.num_running, stats.last_token_at) == (7, 0, None)
    assert stats.steps_total == len(harness.group.plans)


def test_what_runs_is_shown_while_its_first_step_goes_on(harness: Harness) -> None:
    harness.runner.hold_at = 0
    harness.submit(build_request("a", 200, 6))
    wait_until(lambda: harness.loop.stats.num_running == 1, "the request is shown in its slot")
    assert (harness.loop.stats.num_waiting, harness.loop.stats.steps_total) == (0, 0)
    harness.runner.released.set()
    harness.heard.wait_end("a")


def test_steady_decode_is_planned_one_step_ahead_and_gives_the_same_tokens(harness: Harness) -> None:
    ahead: list[int] = []
    execute = harness.runner.execute

    def watch(plan: StepPlan, on_first: OnFirst | None = None) -> object:
        ahead.append(len(harness.group.plans) - 1 - plan.step)
        return execute(plan, on_first)

    harness.runner.execute = watch  # type: ignore[method-assign, assignment]
    harness.submit(build_request("a", 5, 8))
    harness.heard.wait_end("a")
    assert ahead == [1] * 7 + [0]


def test_a_step_reports_all_its_requests_in_one_call(harness: Harness) -> None:
    harness.runner.hold_at = 0
    for name in ("a", "b", "c"):
        harness.submit(build_request(name, 5, 50))
    harness.wait(lambda: harness.loop.stats.requests_total == 3, "all three are known")
    harness.runner.released.set()
    seen: list[Sequence[Outcome]] = []
    while sum(is_end(outcome) for batch in seen for outcome in batch) < 3:
        seen.append(harness.heard.batches.get(timeout=PATIENCE_SECONDS))
    steps = [b for b in seen if any(isinstance(o, RequestEvent) and isinstance(o.event, TokensCommitted) for o in b)]
    for batch in steps:
        ids = [o.request_id for o in batch if isinstance(o, RequestEvent) and isinstance(o.event, TokensCommitted)]
        assert len(ids) == len(set(ids))
    assert max(len(batch) for batch in steps) >= 3


def test_a_lost_rank_ends_every_request_and_the_next_group_begins_anew_without_loading() -> None:
    harness = Harness(step_seconds=0.005)
    harness.start()
    harness.submit(build_request("before"))
    harness.heard.wait_end("before")
    for name in ("a", "b", "c", "d"):
        harness.submit(build_request(name, 5, 400))
    harness.wait(lambda: harness.loop.stats.output_tokens_total > 30, "tokens flow")
    harness.group.is_lost = True
    harness.loop.post(Wake())
    for name in ("a", "b", "c", "d"):
        end = harness.heard.wait_end(name)
        assert isinstance(end, RequestFailed)
        assert end.error.REASON == "RANK_LOST"
    assert harness.loop.stats.requests_failed_total == 4
    harness.wait(lambda: harness.group.num_formed == 2, "a new group forms")
    harness.submit(build_request("after"))
    harness.heard.wait_end("after")
    harness.stop()
    assert harness.num_loads == 1
    assert harness.heard.tokens("after") == harness.heard.tokens("before")
    assert harness.heard.states == [
        EngineState.LOADING, EngineState.SERVING, EngineState.FORMING, EngineState.SERVING,
    ]  # fmt: skip


def test_tokens_of_a_step_in_which_the_group_was_lost_are_never_sent(harness: Harness) -> None:
    harness.submit(build_request("whole", 5, 20))
    harness.heard.wait_end("whole")
    num_published = len(harness.group.plans)
    harness.group.lost_at_publish = num_published + 5
    harness.submit(build_request("cut", 5, 20))
    assert isinstance(harness.heard.wait_end("cut"), RequestFailed)
    assert len(harness.heard.tokens("cut")) == 3, "five plans were sent, the fifth one step ahead"
    harness.wait(lambda: harness.group.num_formed == 2, "a new group forms")
    harness.submit(build_request("again", 5, 20))
    harness.heard.wait_end("again")
    assert harness.heard.tokens("again") == harness.heard.tokens("whole"), "the plan made ahead is forgotten"


def test_a_request_that_comes_while_the_group_forms_fails_at_once(harness: Harness) -> None:
    harness.group.form_errors = [TransportError("not there") for _ in range(5)]
    harness.group.is_lost = True
    harness.loop.post(Wake())
    harness.wait(lambda: harness.heard.states[-1] is EngineState.FORMING, "the loop forms")
    harness.submit(build_request("a"))
    assert isinstance(harness.heard.wait_end("a"), RequestFailed)
    assert harness.loop.stats.requests_total == 0
    harness.wait(lambda: harness.group.num_formed == 2, "it forms after failed attempts")


def test_ranks_that_differ_end_the_loop() -> None:
    harness = Harness()
    harness.group.form_errors = [RanksDifferError(["slots"])]
    with pytest.raises(RanksDifferError):
        harness.loop.run()


def test_memory_is_answered_while_idle_and_while_serving_and_refused_without_a_group(harness: Harness) -> None:
    answers: queue.SimpleQueue[list[MemoryAccount] | None] = queue.SimpleQueue()
    harness.loop.post(MeasureMemory(answers.put))
    assert answers.get(timeout=PATIENCE_SECONDS) == [ACCOUNT]
    harness.submit(build_request("a", 5, 400))
    harness.loop.post(MeasureMemory(answers.put))
    assert answers.get(timeout=PATIENCE_SECONDS) == [ACCOUNT]
    harness.group.form_errors = [TransportError("not there") for _ in range(20)]
    harness.group.is_lost = True
    harness.loop.post(Wake())
    harness.wait(lambda: harness.heard.states[-1] is EngineState.FORMING, "the loop forms")
    harness.loop.post(MeasureMemory(answers.put))
    assert answers.get(timeout=PATIENCE_SECONDS) is None


def test_every_request_ends_exactly_once_through_cancels_and_losses() -> None:
    harness = Harness(step_seconds=0.001)
    harness.start()
    chance = random.Random(5)
    names = [f"r{i}" for i in range(80)]
    for name in names:
        harness.submit(build_request(name, chance.randint(1, 200), chance.randint(0, 30)))
        if chance.random() < 0.3:
            harness.loop.post(Cancel(chance.choice(names)))
        if chance.random() < 0.05:
            harness.group.is_lost = True
            harness.loop.post(Wake())
        time.sleep(chance.random() * 0.02)
    for name in names:
        harness.heard.wait_end(name)
    harness.stop()
    ends = Counter(outcome.request_id for outcome in harness.heard.outcomes if is_end(outcome))
    assert ends == Counter(names)
    kinds = {type(o) for o in harness.heard.outcomes if is_end(o)}
    assert kinds == {RequestEvent, RequestFailed, RequestCancelled}
    for name in names:
        own = [o for o in harness.heard.outcomes if o.request_id == name]
        assert is_end(own[-1]), "nothing follows an end"


ENDS = {
    ConstraintFailure.SLOW: ("UNAVAILABLE", "GRAMMAR_SLOW"),
    ConstraintFailure.LOST: ("UNAVAILABLE", "GRAMMAR_LOST"),
    ConstraintFailure.STUCK: ("INVALID_ARGUMENT", "GRAMMAR_STUCK"),
    ConstraintFailure.REFUSED: ("INVALID_ARGUMENT", "GRAMMAR_REFUSED"),
}


@pytest.mark.parametrize("failure", ConstraintFailure)
@pytest.mark.parametrize("num_heard", [0, 3])
def test_a_request_whose_grammar_fails_ends_with_a_status_and_the_others_go_on(
    harness: Harness, failure: ConstraintFailure, num_heard: int
) -> None:
    harness.submit(build_request("alone", 5, 9))
    harness.heard.wait_end("alone")
    if num_heard == 0:
        harness.runner.failures["a"] = failure
    held_from = harness.runner.hold_at = harness.runner.next_step + num_heard
    harness.submit(build_request("a", 5, 60))
    harness.submit(build_request("b", 5, 9))
    if num_heard:
        harness.wait(lambda: harness.loop.stats.steps_total == held_from, "the first tokens are there")
        harness.runner.failures["a"] = failure
    harness.runner.released.set()
    end = harness.heard.wait_end("a")
    assert isinstance(end, RequestFailed)
    assert (end.error.CODE.name, end.error.REASON) == ENDS[failure]
    assert isinstance(harness.heard.wait_end("b"), RequestEvent)
    assert harness.heard.tokens("b") == harness.heard.tokens("alone")
    assert len(harness.heard.tokens("a")) == num_heard
    harness.stop()
    stats = harness.loop.stats
    assert (stats.requests_failed_total, stats.num_running, stats.num_used_blocks) == (1, 0, 0)
    assert sum(is_end(outcome) for outcome in harness.heard.outcomes) == 3


def test_a_lost_group_empties_the_slots_before_it_is_formed_again(harness: Harness) -> None:
    harness.runner.hold_at = 2
    harness.submit(build_request("a", 5, 60))
    harness.wait(lambda: harness.loop.stats.steps_total == 2, "the request decodes")
    harness.group.form_errors = [TransportError("not yet")] * 1000
    harness.group.is_lost = True
    assert harness.runner.slots
    harness.runner.released.set()
    assert isinstance(harness.heard.wait_end("a"), RequestFailed)
    harness.wait(lambda: not harness.runner.slots, "the slots are empty")
    assert harness.group.num_formed == 1
