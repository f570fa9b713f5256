"""The follower's thread: plans in order, one epoch at a time, and an answer to rank 0 whatever happens."""

import threading
from datetime import timedelta

import pytest

from support.hash_runner import HashRunner
from support.waiting import PATIENCE_SECONDS
from twinspark.engine.v1 import rank_pb2 as pb
from twinspark_engine.errors import RankLostError
from twinspark_engine.memory import MemoryAccount
from twinspark_engine.ranks.follower import Command, EndEpoch, Execute, Follower, JoinEpoch, Load, StopFollower
from twinspark_engine.ranks.group import LoadedRank, OnFirst
from twinspark_engine.ranks.pair_transport import PairTransport
from twinspark_engine.ranks.tcp_group import form_tcp_group
from twinspark_engine.ranks.transport import TransportError
from twinspark_engine.request import Limits, Request, SamplingParams
from twinspark_engine.scheduler.plan import Admission, DecodeWindow, PrefillChunk, StepPlan, StepResult
from twinspark_rpc import ServiceError

REQUEST = Request("a", (1, 2, 3), SamplingParams(1), Limits(50, ignore_eos=True))
FIRST = StepPlan(7, 0, admissions=(Admission(0, REQUEST),), chunks=(PrefillChunk(0, 0, 3),))
Answer = pb.FollowResponse | ServiceError | None


class UnconnectedTransport(PairTransport):
    """Forms a group with nobody."""

    def __init__(self) -> None:
        super().__init__(1, 2, form_tcp_group, bind_host="127.0.0.1", timeout=timedelta(seconds=PATIENCE_SECONDS))

    def join_store(self, host: str, port: int) -> None:
        if port == 0:
            raise TransportError("no store")

    def announce(self, epoch: int) -> None:
        pass

    def form(self, epoch: int) -> None:
        self._failure = ""


class FailingRunner(HashRunner):
    """Loses its peer in the step that is set."""

    fails_at: int | None = None

    def execute(self, plan: StepPlan, on_first: OnFirst | None = None) -> StepResult:
        if plan.step == self.fails_at:
            raise TransportError("the peer is silent")
        return super().execute(plan, on_first)


class Answers(list[Answer]):
    """What rank 0 gets."""

    def put(self, answer: Answer) -> None:
        self.append(answer)


class Harness:
    def __init__(self) -> None:
        self.runner = FailingRunner()
        self.joined: list[bool] = []
        self.num_loads = 0
        self.follower = Follower(UnconnectedTransport(), self._load, self.joined.append)
        self.answers = Answers()

    def _load(self) -> LoadedRank:
        self.num_loads += 1
        return LoadedRank(self.runner, lambda: MemoryAccount(1, 10, 30, 20, {"weights": 4}))

    def run(self, *commands: Command) -> None:
        """All commands, then the end of the thread."""
        for command in (*commands, StopFollower()):
            self.follower.post(command)
        thread = threading.Thread(target=self.follower.run, daemon=True)
        thread.start()
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()

    def join(self, epoch: int = 7, port: int = 1) -> JoinEpoch:
        return JoinEpoch(epoch, "127.0.0.1", port, self.answers)

    def ready(self, epoch: int = 7) -> pb.FollowResponse:
        return pb.FollowResponse(ready=pb.Ready(epoch=epoch))


@pytest.fixture
def harness() -> Harness:
    return Harness()


def test_plans_before_the_end_are_executed_and_the_stream_ends_in_order(harness: Harness) -> None:
    plans = [FIRST, *(StepPlan(7, step, windows=(DecodeWindow(0),)) for step in (1, 2))]
    harness.run(Load(), harness.join(), *map(Execute, plans), EndEpoch(7, "rank 0 ended the stream"))
    assert harness.answers == [harness.ready(), None]
    assert harness.runner.num_steps == 3
    assert harness.joined == [True, False]


def test_weights_are_loaded_once_for_all_epochs_and_slots_begin_empty(harness: Harness) -> None:
    harness.run(Load(), harness.join(), Execute(FIRST), Load(), harness.join(8))
    assert harness.num_loads == 1
    assert harness.runner.slots == {}
    assert harness.joined == [True, False, True, False]


@pytest.mark.parametrize("plan", [StepPlan(7, 1, report_memory=True), StepPlan(7, 0, report_memory=True)])
def test_a_plan_out_of_order_ends_the_epoch(harness: Harness, plan: StepPlan) -> None:
    plans = [plan] if plan.step else [FIRST, plan]
    harness.run(harness.join(), *map(Execute, plans))
    assert isinstance(harness.answers[-1], RankLostError)
    assert harness.joined == [True, False]


def test_a_failed_exchange_ends_the_epoch_and_later_plans_are_passed_over(harness: Harness) -> None:
    harness.runner.fails_at = 0
    harness.run(harness.join(), Execute(FIRST), Execute(StepPlan(7, 1, windows=(DecodeWindow(0),))))
    assert harness.answers[:1] == [harness.ready()]
    assert [type(answer) for answer in harness.answers[1:]] == [RankLostError]


def test_a_plan_of_an_older_epoch_is_passed_over(harness: Harness) -> None:
    harness.run(harness.join(8), Execute(FIRST))
    assert harness.answers == [harness.ready(8)]
    assert harness.runner.num_steps == 0


def test_the_end_of_an_older_epoch_leaves_the_present_one_alone(harness: Harness) -> None:
    harness.run(harness.join(8), EndEpoch(7, None), Execute(StepPlan(8, 0, report_memory=True)))
    assert len(harness.answers) == 2
    assert isinstance(harness.answers[1], pb.FollowResponse)


def test_the_end_of_the_epoch_leaves_the_group(harness: Harness) -> None:
    harness.run(harness.join(), EndEpoch(7, None), Execute(FIRST))
    assert harness.runner.num_steps == 0
    assert harness.answers == [harness.ready(), None]


def test_a_store_that_cannot_be_reached_is_told_to_rank_0(harness: Harness) -> None:
    harness.run(harness.join(port=0))
    assert [type(answer) for answer in harness.answers] == [RankLostError]
    assert True not in harness.joined


def test_memory_is_answered_after_the_step(harness: Harness) -> None:
    harness.run(harness.join(), Execute(StepPlan(7, 0, report_memory=True)))
    answer = harness.answers[1]
    assert isinstance(answer, pb.FollowResponse)
    assert (answer.memory.rank, dict(answer.memory.parts)) == (1, {"weights": 4})


@pytest.mark.parametrize("reason", [None, "rank 0 ended the stream"])
def test_the_end_of_an_epoch_empties_the_slots_at_once(harness: Harness, reason: str | None) -> None:
    harness.run(Load(), harness.join(), Execute(FIRST), EndEpoch(7, reason))
    assert harness.runner.num_steps == 1
    assert harness.runner.slots == {}
