"""Torch's store and gloo group, built directly and typed: torch's own stubs leave out what is used here."""

import socket
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Protocol, cast

import torch.distributed as dist
from torch import Tensor


class Store(Protocol):
    """A key-value store that all ranks reach. Calls raise RuntimeError when it is gone or the timeout has passed."""

    @property
    def port(self) -> int: ...
    def set(self, key: str, value: str) -> None: ...
    def check(self, keys: Sequence[str]) -> bool: ...


class Work(Protocol):
    """A started send or receive."""

    def wait(self) -> bool:
        """Block until the bytes have moved. Raises RuntimeError on failure and after the group's timeout."""
        ...


class PairGroup(Protocol):
    """Sends and receives between pairs of ranks. Each call starts one, in order for each peer."""

    def send(self, tensors: list[Tensor], peer: int, tag: int) -> Work: ...
    def recv(self, tensors: list[Tensor], peer: int, tag: int) -> Work: ...
    def abort(self) -> None: ...


def host_store(host: str, timeout: timedelta) -> Store:
    """Serve a store on a free port of this one address. Raises OSError if the address is not this machine's."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, 0), family=family, backlog=16)
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


def form_group(store: Store, prefix: str, rank: int, world_size: int, host: str, timeout: timedelta) -> PairGroup:
    """Meet the other ranks in the store and connect to each. Blocks up to the timeout; raises RuntimeError."""
    gloo = _distributed().ProcessGroupGloo
    options = gloo._Options()  # noqa: SLF001
    options._devices = [gloo.create_device(hostname=host)]  # noqa: SLF001
    options._timeout = timeout  # noqa: SLF001
    return cast(PairGroup, gloo(_distributed().PrefixStore(prefix, store), rank, world_size, options))


def _distributed() -> Any:
    return dist
