"""Ports that were free a moment ago."""

import socket
from contextlib import ExitStack


def pick_free_ports(count: int) -> list[int]:
    """Different ports; all are held until the last is picked."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [entry.getsockname()[1] for entry in sockets]
