"""A group over one TCP connection for each pair of ranks, written and read by the step thread itself.

No other thread takes part, so that an exchange costs two system calls a peer however busy the cores are.
"""

import json
import secrets
import socket
from datetime import timedelta

from twinspark_engine.ranks.exchange_buffers import ExchangeBuffer
from twinspark_engine.ranks.store import Store, listen

EAGER_BYTES = 64 * 1024
"""Parts up to this size are sent before anything is received: the kernel's buffers of a connection hold them."""
TOKEN_BYTES = 16
RANK_BYTES = 4


class TcpGroup:
    """A PairGroup over connected sockets, by rank of the peer."""

    def __init__(self, rank: int, links: dict[int, socket.socket], timeout: timedelta) -> None:
        self._rank = rank
        self._links = dict(sorted(links.items()))
        for link in links.values():
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link.settimeout(timeout.total_seconds())

    def exchange(self, buffer: ExchangeBuffer) -> None:
        """See PairGroup.exchange. The order of sends and receives depends on the size only, as on every rank."""
        own = buffer.raw[self._rank]
        if own.nbytes <= EAGER_BYTES:
            for link in self._links.values():
                link.sendall(own)
            for peer, link in self._links.items():
                _receive(link, buffer.raw[peer])
            return
        # One pair after the other, by rank, and in each the lower rank sends first: nobody waits in a circle.
        for peer, link in self._links.items():
            if self._rank < peer:
                link.sendall(own)
            _receive(link, buffer.raw[peer])
            if self._rank > peer:
                link.sendall(own)

    def close(self) -> None:
        """See PairGroup.close."""
        for link in self._links.values():
            link.close()


def form_tcp_group(store: Store, prefix: str, rank: int, world_size: int, host: str, timeout: timedelta) -> TcpGroup:
    """A FormGroup: this rank connects to every lower rank, and every higher rank connects to it.

    A connection begins with a token from the store, so that a stranger on the port is turned away, and the rank. Raises
    RuntimeError, OSError.
    """
    links: dict[int, socket.socket] = {}
    token = secrets.token_bytes(TOKEN_BYTES)
    try:
        with listen(host) as listener:
            listener.settimeout(timeout.total_seconds())
            address = {"host": host, "port": listener.getsockname()[1], "token": token.hex()}
            store.set(f"{prefix}/address/{rank}", json.dumps(address))
            for peer in range(rank):
                links[peer] = _connect(json.loads(store.get(f"{prefix}/address/{peer}")), rank, timeout)
            while len(links) < world_size - 1:
                peer, link = _accept(listener, token, timeout)
                if link is not None:
                    links[peer] = link
    except (RuntimeError, OSError):
        for link in links.values():
            link.close()
        raise
    return TcpGroup(rank, links, timeout)


def _connect(address: dict[str, str], rank: int, timeout: timedelta) -> socket.socket:
    link = socket.create_connection((address["host"], int(address["port"])), timeout.total_seconds())
    link.sendall(bytes.fromhex(address["token"]) + rank.to_bytes(RANK_BYTES, "little"))
    return link


def _accept(listener: socket.socket, token: bytes, timeout: timedelta) -> tuple[int, socket.socket | None]:
    """The next caller and its rank; no socket if it does not know the token."""
    link, _ = listener.accept()
    link.settimeout(timeout.total_seconds())
    hello = bytearray(TOKEN_BYTES + RANK_BYTES)
    try:
        _receive(link, memoryview(hello))
    except OSError:
        hello.clear()
    if not secrets.compare_digest(bytes(hello[:TOKEN_BYTES]), token):
        link.close()
        return -1, None
    return int.from_bytes(hello[TOKEN_BYTES:], "little"), link


def _receive(link: socket.socket, view: memoryview) -> None:
    """Fill the view. Raises OSError: a timeout, or a peer that has left."""
    num_received = 0
    while num_received < view.nbytes:
        num_bytes = link.recv_into(view[num_received:])
        if num_bytes == 0:
            raise ConnectionResetError("a peer has left the group")
        num_received += num_bytes
