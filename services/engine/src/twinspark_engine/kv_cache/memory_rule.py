"""Admission by memory: what must stay free once everything is loaded, and beside running requests.

All is plain arithmetic on what a memory source read: the same rule holds on a CPU machine, on unified memory and on a
GPU. Weights, blocks and slots are allocated at load and never grow; what a request still adds is bounded by its length.
"""

from collections.abc import Callable
from dataclasses import dataclass

HOST_BYTES_PER_TOKEN = 64
"""A token id as the scheduler and the runner keep it: in a tuple, as an int, in a tensor; rounded up."""


@dataclass(frozen=True, slots=True)
class LoadNeeds:
    """Bytes that a rank still has to allocate, with its weights loaded."""

    slot_bytes: int
    """One slot: recurrent state, convolution rows, index rings, table, counts of its tokens for penalties."""
    num_slots: int
    """Slots, the trash row not counted."""
    block_bytes: int
    """One block over all layers."""
    num_blocks: int
    """Blocks, the null and the trash block included."""

    @property
    def total_bytes(self) -> int:
        """All of it; the trash row counts as a slot."""
        return (self.num_slots + 1) * self.slot_bytes + self.num_blocks * self.block_bytes


class MemoryBudgetError(Exception):
    """The machine has too little free memory for what the settings ask for."""


def check_load(needs: LoadNeeds, free_bytes: int, reserve_bytes: int) -> None:
    """Raise MemoryBudgetError, which says how many slots would fit, unless the reserve stays free after the load."""
    if free_bytes - needs.total_bytes >= reserve_bytes:
        return
    fitting = (free_bytes - reserve_bytes - needs.num_blocks * needs.block_bytes) // needs.slot_bytes - 1
    raise MemoryBudgetError(
        f"{needs.num_slots} slots of {needs.slot_bytes} bytes and {needs.num_blocks} blocks of {needs.block_bytes} "
        f"need {needs.total_bytes} bytes; {free_bytes} are free and {reserve_bytes} must stay so. "
        + (f"{fitting} slots would fit" if fitting > 0 else "Fewer blocks (kv_blocks) or a smaller context would fit")
    )


class AdmissionRule:
    """Whether a request may run beside others. Depends on its arguments and on the requests booked so far only."""

    def __init__(self, admit_bytes: int, scratch_bytes: Callable[[int], int]) -> None:
        """scratch_bytes: to what the one selection scratch grows for a request of so many tokens."""
        self._admit_bytes = admit_bytes
        self._scratch_bytes = scratch_bytes
        self._scratch_booked = 0

    def growth_bytes(self, num_tokens: int) -> int:
        """Bytes that a request of this many tokens adds at most to what earlier ones made the process hold."""
        growth = max(0, self._scratch_bytes(num_tokens) - self._scratch_booked)
        return growth + HOST_BYTES_PER_TOKEN * num_tokens

    def can_admit(self, num_tokens: int, free_bytes: int) -> bool:
        """Whether enough stays free."""
        return free_bytes - self.growth_bytes(num_tokens) >= self._admit_bytes

    def book(self, num_tokens: int) -> None:
        """A request was admitted: the scratch may have grown for it, and stays so."""
        self._scratch_booked = max(self._scratch_booked, self._scratch_bytes(num_tokens))
