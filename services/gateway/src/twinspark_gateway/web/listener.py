"""Binds the HTTP listener, so that a taken port is one clear error that names it."""

import os
import socket

import structlog

log = structlog.get_logger()

_BACKLOG = 2048


class AddressTakenError(Exception):
    """The address cannot be bound; the message names it."""


def open_listener(host: str, port: int) -> socket.socket:
    """Give a listening socket; port 0 picks a free one. Raises AddressTakenError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise AddressTakenError(f"cannot listen on {host} port {port}: {os.strerror(error.errno or 0)}") from error
    # Accepted sockets inherit it. Without it the second write of a reply waits for the first one's acknowledgement,
    # 40 ms; asyncio sets it only on sockets that name their protocol, and accepted ones do not.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    log.info("listening", host=host, port=listener.getsockname()[1])
    return listener
