"""PairTransport: the exchange between ranks on CPUs, over a group of connected pairs that is formed anew each epoch."""

from datetime import timedelta

from torch import Tensor

from twinspark_engine.ranks.exchange_buffers import ExchangeBuffers
from twinspark_engine.ranks.pair_group import FormGroup, PairGroup
from twinspark_engine.ranks.store import Store, host_store, join_store
from twinspark_engine.ranks.transport import TransportError

NOT_FORMED = "the group is not formed"


class PairTransport:
    """One object for the life of the process; a group for each epoch. Used by the step thread only.

    A failed or timed-out exchange poisons the group: the peers' sockets are closed, the buffer may hold old data, and
    every call raises until the next form.
    """

    def __init__(
        self, rank: int, world_size: int, form_group: FormGroup, *, bind_host: str, timeout: timedelta
    ) -> None:
        self.rank = rank
        self.world_size = world_size
        self._form_group = form_group
        self._bind_host = bind_host
        self._timeout = timeout
        self._peers = tuple(peer for peer in range(world_size) if peer != rank)
        self._buffers = ExchangeBuffers(world_size)
        self._store: Store | None = None
        self._group: PairGroup | None = None
        self._failure = NOT_FORMED

    def host_store(self) -> int:
        """Rank 0: open the store of the next epoch on a free port and return the port."""
        self.leave(NOT_FORMED)
        self._store = host_store(self._bind_host, self._timeout)
        return self._store.port

    def join_store(self, host: str, port: int) -> None:
        """Other ranks: connect to rank 0's store. Blocks up to the timeout; raises TransportError."""
        self.leave(NOT_FORMED)
        try:
            self._store = join_store(host, port, self._timeout)
        except RuntimeError as error:
            raise TransportError(f"rank {self.rank} cannot reach the store: {error}") from error

    def announce(self, epoch: int) -> None:
        """Tell rank 0 through the store that this rank is about to form the group. Raises TransportError."""
        try:
            self._get_store().set(_arrival_key(epoch, self.rank), "1")
        except RuntimeError as error:
            raise TransportError(f"rank {self.rank} lost the store: {error}") from error

    def all_announced(self, epoch: int) -> bool:
        """Rank 0: whether every other rank has announced itself. Raises TransportError."""
        try:
            return self._get_store().check([_arrival_key(epoch, peer) for peer in self._peers])
        except RuntimeError as error:
            raise TransportError(f"rank {self.rank} lost the store: {error}") from error

    def form(self, epoch: int) -> None:
        """Form the group with the ranks that are in the store. Blocks up to the timeout; raises TransportError."""
        store, prefix = self._get_store(), f"group/{epoch}"
        try:
            self._group = self._form_group(store, prefix, self.rank, self.world_size, self._bind_host, self._timeout)
        except (RuntimeError, OSError) as error:
            raise TransportError(f"rank {self.rank} cannot form the group: {error}") from error
        self._failure = ""

    def leave(self, reason: str) -> None:
        """Close the group and the store; every call raises with this reason until the next form. Does not block."""
        self._failure = reason
        if self._group is not None:
            self._group.close()
        self._group = None
        self._store = None

    def gather(self, x: Tensor) -> Tensor:
        """Send x to all ranks; see Transport.gather. Raises TransportError before the buffer could be read."""
        group = self._get_group()
        buffer = self._buffers.get(x)
        buffer.parts[self.rank].copy_(x)
        try:
            group.exchange(buffer)
        except (RuntimeError, OSError) as error:
            self._failure = f"an exchange of rank {self.rank} with its peers failed: {error}"
            group.close()
            raise TransportError(self._failure) from error
        return buffer.gathered

    def check(self) -> None:
        """Raise TransportError if the group is not formed or poisoned."""
        if self._failure:
            raise TransportError(self._failure)

    @property
    def num_buffer_bytes(self) -> int:
        """Bytes of the exchange's buffers."""
        return self._buffers.num_bytes

    def _get_group(self) -> PairGroup:
        self.check()
        if self._group is None:
            raise TransportError(NOT_FORMED)
        return self._group

    def _get_store(self) -> Store:
        if self._store is None:
            raise TransportError("the group has no store")
        return self._store


def _arrival_key(epoch: int, rank: int) -> str:
    return f"arrived/{epoch}/{rank}"
