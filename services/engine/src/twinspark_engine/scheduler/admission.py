"""Who gets a slot in this step, and which background requests give theirs up for that.

Counts only: blocks are alike, so whatever the order of the calls that follow, what fits here fits there.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from twinspark_engine.scheduler.running import RunningRequest
from twinspark_engine.scheduler.waiting import WaitingRequest


@dataclass(frozen=True, slots=True)
class Claim:
    """A waiting request and the KV blocks that it needs."""

    waiting: WaitingRequest
    num_blocks: int


@dataclass(frozen=True, slots=True)
class Holding:
    """A running background request and the KV blocks that it would give up."""

    running: RunningRequest
    num_blocks: int


@dataclass(slots=True)
class Room:
    """What nobody holds."""

    num_slots: int
    num_blocks: int

    def fits(self, num_blocks: int) -> bool:
        """Whether there is a slot and so many blocks."""
        return self.num_slots > 0 and num_blocks <= self.num_blocks


TakeMemory = Callable[[WaitingRequest, int], bool]
"""Asked of a request that fits otherwise, with the number of requests beside it; books it where the answer is yes."""


def need_no_memory(_waiting: WaitingRequest, _num_beside: int) -> bool:
    """Admission does not look at memory."""
    return True


@dataclass(frozen=True, slots=True)
class AdmissionDecision:
    """Yields come first, then admissions in their order."""

    yields: tuple[RunningRequest, ...]
    admitted: tuple[WaitingRequest, ...]


def decide_admissions(
    line: Iterable[Claim],
    room: Room,
    background: Sequence[Holding],
    num_running: int = 0,
    take_memory: TakeMemory = need_no_memory,
) -> AdmissionDecision:
    """Admit in the order of the line until one does not fit; nobody overtakes it.

    A foreground request that does not fit makes background requests yield, the one admitted last first, as few as
    that order allows, and none if all of them would not be enough. line: foreground first; it is read as far as needed.
    """
    free = Room(room.num_slots, room.num_blocks)
    may_yield = sorted(background, key=lambda holding: holding.running.turn, reverse=True)
    yields: list[RunningRequest] = []
    admitted: list[WaitingRequest] = []
    for claim in line:
        is_background = claim.waiting.request.is_background
        if is_background and yields:
            break  # a request that yields goes back to the head of the background line
        leaving = _fewest(claim.num_blocks, free, () if is_background else may_yield)
        if leaving is None:
            break
        if not take_memory(claim.waiting, num_running + len(admitted) - len(yields) - len(leaving)):
            break
        for holding in leaving:
            may_yield.remove(holding)
            yields.append(holding.running)
            free.num_slots += 1
            free.num_blocks += holding.num_blocks
        free.num_slots -= 1
        free.num_blocks -= claim.num_blocks
        admitted.append(claim.waiting)
    return AdmissionDecision(tuple(yields), tuple(admitted))


def _fewest(num_blocks: int, free: Room, may_yield: Sequence[Holding]) -> Sequence[Holding] | None:
    room = Room(free.num_slots, free.num_blocks)
    for count in range(len(may_yield) + 1):
        if room.fits(num_blocks):
            return may_yield[:count]
        if count < len(may_yield):
            room.num_slots += 1
            room.num_blocks += may_yield[count].num_blocks
    return None
