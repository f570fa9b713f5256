"""Follower: the step thread of every rank but 0. Blocks on its inbox; executes plans in the order of their arrival."""

import queue
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from twinspark.engine.v1 import rank_pb2 as pb
from twinspark_engine.errors import RankLostError
from twinspark_engine.ranks.convert import memory_to_proto
from twinspark_engine.ranks.group import LoadedRank
from twinspark_engine.ranks.pair_transport import PairTransport
from twinspark_engine.ranks.transport import TransportError
from twinspark_engine.scheduler.plan import StepPlan
from twinspark_rpc import ServiceError

log = structlog.get_logger()


class Answers(Protocol):
    """The way back of one Follow stream."""

    def put(self, answer: pb.FollowResponse | ServiceError | None) -> None:
        """Send a message, or end the stream with a status (None: OK). Does not block."""
        ...


@dataclass(frozen=True, slots=True)
class Load:
    """Load the weights, unless that was done for an earlier epoch."""


@dataclass(frozen=True, slots=True)
class JoinEpoch:
    """Meet the other ranks."""

    epoch: int
    store_host: str
    store_port: int
    answers: Answers


@dataclass(frozen=True, slots=True)
class Execute:
    """Run one step."""

    plan: StepPlan


@dataclass(frozen=True, slots=True)
class EndEpoch:
    """Leave the group of an epoch, if it is the present one. No reason: the stream broke."""

    epoch: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class StopFollower:
    """End the thread."""


Command = Load | JoinEpoch | Execute | EndEpoch | StopFollower


class Follower:
    """`post` from any thread; `run` is the thread."""

    def __init__(
        self, transport: PairTransport, load: Callable[[], LoadedRank], on_joined: Callable[[bool], None]
    ) -> None:
        """`on_joined` hears, from the thread, whether this rank is in a group."""
        self._transport = transport
        self._load = load
        self._on_joined = on_joined
        self._inbox: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._loaded: LoadedRank | None = None
        self._joined: JoinEpoch | None = None
        self._next_step = 0

    def post(self, command: Command) -> None:
        """Have a command run after those before."""
        self._inbox.put(command)

    def run(self) -> None:
        """Execute commands until StopFollower. Idle, it waits without using a CPU."""
        while not isinstance(command := self._inbox.get(), StopFollower):
            try:
                self._run(command)
            except TransportError as error:
                self._lose(str(error))
        self._leave("the engine stops")

    def _run(self, command: Command) -> None:
        match command:
            case Load():
                self._get_loaded()
            case JoinEpoch():
                self._join(command)
            case Execute():
                self._execute(command.plan)
            case EndEpoch():
                self._end(command)

    def _get_loaded(self) -> LoadedRank:
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def _join(self, command: JoinEpoch) -> None:
        self._leave("a newer epoch begins")
        self._joined = command
        self._next_step = 0
        self._get_loaded().runner.reset()
        self._transport.join_store(command.store_host, command.store_port)
        self._transport.announce(command.epoch)
        self._transport.form(command.epoch)
        log.info("group_formed", epoch=command.epoch)
        command.answers.put(pb.FollowResponse(ready=pb.Ready(epoch=command.epoch)))
        self._on_joined(True)

    def _execute(self, plan: StepPlan) -> None:
        if self._joined is None or plan.epoch != self._joined.epoch:
            return
        if plan.step != self._next_step:
            raise TransportError(f"step {plan.step} came where {self._next_step} was due")
        self._next_step += 1
        loaded = self._get_loaded()
        loaded.runner.execute(plan)
        self._transport.check()
        if plan.report_memory:
            account = memory_to_proto(loaded.measure_memory())
            self._joined.answers.put(pb.FollowResponse(memory=account))

    def _end(self, command: EndEpoch) -> None:
        if self._joined is not None and self._joined.epoch == command.epoch:
            log.info("group_left", epoch=command.epoch, reason=command.reason or "the stream broke")
            self._joined.answers.put(None)
            self._leave("the epoch has ended")

    def _lose(self, reason: str) -> None:
        log.warning("group_lost", epoch=self._joined.epoch if self._joined else 0, reason=reason)
        if self._joined is not None:
            self._joined.answers.put(RankLostError())
        self._leave(reason)

    def _leave(self, reason: str) -> None:
        if self._joined is not None:
            self._joined = None
            if self._loaded is not None:
                self._loaded.runner.reset()
            self._on_joined(False)
        self._transport.leave(reason)
