"""What ranks need of each other inside a forward: one gather, added up in rank order.

Partial sums are gathered and added rank 0 first, never all-reduced, so that every rank holds the same bits whatever the
size of the message. How the bytes travel is the business of the implementations.
"""

from typing import Protocol

from torch import Tensor


class TransportError(RuntimeError):
    """An exchange failed or timed out: what its buffer holds is stale, and the group must be formed anew."""


class Transport(Protocol):
    """The exchange between the ranks of one group, used by the step thread only."""

    @property
    def rank(self) -> int:
        """This process's place in the group, 0 to world_size - 1."""
        ...

    @property
    def world_size(self) -> int:
        """The number of ranks; 1 is a group of its own."""
        ...

    def gather(self, x: Tensor) -> Tensor:
        """Send x to all ranks and return [world_size, *x.shape], in rank order.

        Every rank MUST call it in the same order with the same shape and dtype. May block. The result may be a buffer
        that the next gather of the same shape writes again: read it before. Raises TransportError, and from then on
        always does.
        """
        ...

    def check(self) -> None:
        """Raise TransportError if an exchange has failed. Does not block."""
        ...


class LocalTransport:
    """The group of one rank: nothing travels."""

    rank = 0
    world_size = 1

    def gather(self, x: Tensor) -> Tensor:
        """Return x as the only part, [1, *x.shape]."""
        return x.unsqueeze(0)

    def check(self) -> None:
        """Never raises: there is no peer to lose."""


def sum_in_rank_order(gathered: Tensor) -> Tensor:
    """Add [world_size, ...] over its first axis, rank 0 first: the order of additions fixes the bits."""
    total = gathered[0]
    for part in gathered[1:]:
        total = total + part
    return total
