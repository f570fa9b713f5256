"""Ports: whether the one asked for is free, and free ones for the inner services."""

import socket

LOOPBACK = "127.0.0.1"


class PortTakenError(Exception):
    """Something else listens there."""


def check_free(host: str, port: int) -> None:
    """Raise PortTakenError, which names the port, if a listener cannot be bound."""
    try:
        with socket.socket() as probe:
            # As the gateway binds: connections of a past run that still close down do not count.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        raise PortTakenError(
            f"port {port} on {host} cannot be used ({error.strerror}); choose another with PORT=<number>"
        ) from None


def pick_free(count: int) -> list[int]:
    """Different ports on loopback that nothing listens on now."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind((LOOPBACK, 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()
