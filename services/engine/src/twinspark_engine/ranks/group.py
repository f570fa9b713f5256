"""What rank 0's loop needs of the group of ranks, and the group of one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from twinspark_engine.memory import MemoryAccount
from twinspark_engine.scheduler.plan import SlotOutput, StepPlan, StepResult

OnFirst = Callable[[tuple[SlotOutput, ...]], None]
"""Hears of first tokens while the step goes on. Called in the runner's thread; what it raises ends the step."""


class StepRunner(Protocol):
    """Executes plans on one rank, from one thread. Equal plans give equal results on every rank."""

    def execute(self, plan: StepPlan, on_first: OnFirst | None = None) -> StepResult:
        """Run one step. May block in exchanges; raises TransportError, and the state of all slots is then lost.

        Where slots decode in this step, on_first hears the outputs of the prompt forward, if there are any, before the
        decode forward begins; the result is then without them.
        """
        ...

    def reset(self) -> None:
        """Forget all requests: an epoch has ended, or a new one starts with empty slots."""
        ...


@dataclass(frozen=True, slots=True)
class LoadedRank:
    """What a rank has once its weights are loaded; kept for the life of the process, whatever becomes of the group."""

    runner: StepRunner
    measure_memory: Callable[[], MemoryAccount]
    free_bytes: Callable[[], int] | None = None
    """What this rank's memory source calls free, now; None: nobody asks."""


class Group(Protocol):
    """The ranks as rank 0 sees them. Called from the loop's thread only."""

    def form(self, load: Callable[[], None]) -> int:
        """Agree, load, connect; return the epoch. Blocks; raises TransportError (try again) or RanksDifferError.

        `load` is called after the agreement and before the first exchange.
        """
        ...

    def publish(self, plan: StepPlan) -> None:
        """Send a plan to the other ranks. Does not block."""
        ...

    def check(self) -> None:
        """Raise TransportError if a rank is known to be lost. Does not block."""
        ...

    def collect_memory(self) -> list[MemoryAccount]:
        """The other ranks' answers to a plan with report_memory. Blocks; raises TransportError."""
        ...

    def leave(self, reason: str) -> None:
        """End the epoch after a loss. Does not raise."""
        ...

    def finish(self) -> None:
        """End the epoch in order: the other ranks execute what was sent and go idle. Does not raise."""
        ...


class SoloGroup:
    """The group of one rank: nothing to agree on, nothing to lose."""

    def form(self, load: Callable[[], None]) -> int:
        """Load; epoch 1."""
        load()
        return 1

    def publish(self, plan: StepPlan) -> None:
        """Nobody to send to."""

    def check(self) -> None:
        """Never raises."""

    def collect_memory(self) -> list[MemoryAccount]:
        """No other rank."""
        return []

    def leave(self, reason: str) -> None:
        """Nothing to end."""

    def finish(self) -> None:
        """Nothing to end."""
