"""Torch's TCP store, in which ranks meet before they are connected; typed, as torch's stubs leave out what is used."""

import socket
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Protocol, cast

import torch.distributed as dist


class Store(Protocol):
    """A key-value store that all ranks reach. Calls raise RuntimeError when it is gone or the timeout has passed."""

    @property
    def port(self) -> int: ...
    def set(self, key: str, value: str) -> None: ...
    def get(self, key: str) -> bytes: ...
    def check(self, keys: Sequence[str]) -> bool: ...


def host_store(host: str, timeout: timedelta) -> Store:
    """Serve a store on a free port of this one address. Raises OSError if the address is not this machine's."""
    listener = listen(host)
    port = listener.getsockname()[1]
    # The store takes the socket over and closes it.
    return cast(
        Store,
        _distributed().TCPStore(
            host,
            port,
            is_master=True,
            wait_for_workers=False,
            timeout=timeout,
            master_listen_fd=listener.detach(),
        ),
    )


def join_store(host: str, port: int, timeout: timedelta) -> Store:
    """Connect to a store. Raises RuntimeError after the timeout."""
    return cast(Store, _distributed().TCPStore(host, port, is_master=False, wait_for_workers=False, timeout=timeout))


def listen(host: str) -> socket.socket:
    """A listener on a free port of this one address. Raises OSError if the address is not this machine's."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, 0), family=family, backlog=64)


def _distributed() -> Any:
    return dist
