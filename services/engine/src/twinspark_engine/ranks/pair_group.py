"""What a transport needs of a group: one exchange between every pair of ranks. How one is formed lives beside it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from twinspark_engine.ranks.exchange_buffers import ExchangeBuffer
from twinspark_engine.ranks.store import Store


class PairGroup(Protocol):
    """Connections from this rank to every other; used by the step thread only."""

    def exchange(self, buffer: ExchangeBuffer) -> None:
        """Send this rank's part to every peer, and receive every peer's part into its place.

        Blocks up to the timeout. Raises RuntimeError or OSError; the buffer may then hold old data.
        """
        ...

    def close(self) -> None:
        """Let the peers know that this rank has left. Does not block or raise."""
        ...


FormGroup = Callable[[Store, str, int, int, str, timedelta], PairGroup]
"""(store, key prefix, rank, world size, own host, timeout): meets the other ranks in the store and connects to each.

Blocks up to the timeout; raises RuntimeError or OSError.
"""
