"""A gRPC server with health, reflection, interceptors, TLS and keepalive, and the drain that every service shares.

Drain: on SIGTERM or SIGINT health says NOT_SERVING first and for good, then the service ends its work, then the server
stops. A second signal stops at once.
"""

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection
from prometheus_client import CollectorRegistry, start_http_server

from twinspark_rpc.interceptors import CallInterceptor
from twinspark_rpc.keepalive import keepalive_options
from twinspark_rpc.metrics import RpcMetrics
from twinspark_rpc.settings import ListenSettings
from twinspark_rpc.transport_security import server_credentials

log = structlog.get_logger()

_OVERALL = ""  # grpc.health.v1's name for the whole server


class AddressTakenError(Exception):
    """The listener's address cannot be bound; the message names it."""


class RpcServer:
    """One gRPC listener of a process. Used from the event loop's thread.

    Order of calls: add (once for each service), start, set_serving, run_until_signal or stop.
    """

    def __init__(self, service: str, settings: ListenSettings, registry: CollectorRegistry) -> None:
        """`service`: the short name (`engine`) that metrics and error domains carry."""
        self._settings = settings
        self._registry = registry
        self._metrics = RpcMetrics(service, registry)
        self._interceptor = CallInterceptor(f"{service}.twinspark", self._metrics)
        self._health = health.aio.HealthServicer()
        self._registrations: list[tuple[Callable[[Any, Any], None], Any, str]] = []
        self._server: grpc.aio.Server | None = None
        self.port = 0

    def add(self, add_to_server: Callable[[Any, Any], None], servicer: Any, full_name: str) -> None:
        """Register a servicer by its generated function. `full_name`: as in the proto, `twinspark.x.v1.XService`."""
        self._registrations.append((add_to_server, servicer, full_name))

    async def start(self) -> None:
        """Listen; `port` then holds the port in use. Health says NOT_SERVING. Raises AddressTakenError."""
        server = grpc.aio.server(
            interceptors=[self._interceptor],
            options=[
                ("grpc.so_reuseport", 0),  # else two servers share a port in silence, and calls reach either
                ("grpc.max_receive_message_length", self._settings.max_message_bytes),
                ("grpc.max_send_message_length", self._settings.max_message_bytes),
                *keepalive_options(self._settings.keepalive_timeout_seconds),
            ],
        )
        for add_to_server, servicer, _ in self._registrations:
            add_to_server(servicer, server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        names = [name for _, _, name in self._registrations]
        reflection.enable_server_reflection([*names, health.SERVICE_NAME, reflection.SERVICE_NAME], server)
        self.port = self._bind(server)
        await self.set_serving(False)
        await server.start()
        self._server = server
        self._metrics.watch_tasks(asyncio.get_running_loop())
        if self._settings.metrics_port:
            start_http_server(self._settings.metrics_port, self._settings.host, self._registry)
        log.info("listening", host=self._settings.host, port=self.port, services=names)

    async def set_serving(self, serving: bool) -> None:
        """Say in health whether calls are taken, for the server and each of its services. No effect once draining."""
        kinds = health_pb2.HealthCheckResponse.ServingStatus
        status = kinds.SERVING if serving else kinds.NOT_SERVING
        for name in (_OVERALL, *(name for _, _, name in self._registrations)):
            await self._health.set(name, status)

    async def run_until_signal(self, drain: Callable[[], Awaitable[None]] | None = None) -> None:
        """Serve until SIGTERM or SIGINT, then drain and stop.

        `drain`: refuses new work and returns when running work has ended; it gets `drain_seconds`, after which running
        calls are cancelled.
        """
        loop = asyncio.get_running_loop()
        signalled, hurried = asyncio.Event(), asyncio.Event()

        def note() -> None:
            (hurried if signalled.is_set() else signalled).set()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, note)
        await signalled.wait()
        log.info("draining", seconds=self._settings.drain_seconds)
        work = asyncio.ensure_future(self.stop(drain))
        hurry = asyncio.ensure_future(hurried.wait())
        await asyncio.wait({work, hurry}, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if not work.done():
            work.cancel()
            await self._stop_listener(0)
        else:
            await work
        log.info("stopped")

    async def stop(self, drain: Callable[[], Awaitable[None]] | None = None) -> None:
        """Flip health for good, drain, then stop listening; running calls get what is left of `drain_seconds`."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.drain_seconds
        await self._health.enter_graceful_shutdown()
        if drain is not None:
            try:
                await asyncio.wait_for(drain(), self._settings.drain_seconds)
            except TimeoutError:
                log.warning("drain_timed_out", seconds=self._settings.drain_seconds)
        await self._stop_listener(max(deadline - loop.time(), 0))

    async def _stop_listener(self, grace_seconds: float) -> None:
        if self._server is not None:
            await self._server.stop(grace_seconds)

    def _bind(self, server: grpc.aio.Server) -> int:
        host, port = self._settings.host, self._settings.port
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        credentials = server_credentials(self._settings, self._settings.tls_client_ca_file)
        try:
            if credentials is None:
                return server.add_insecure_port(address)
            return server.add_secure_port(address, credentials)
        except RuntimeError:  # grpc gives no cause
            raise AddressTakenError(f"cannot listen on {address}: {_cause(host, port)}") from None


def _cause(host: str, port: int) -> str:
    """Why an address cannot be bound, in the system's words."""
    try:
        with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
            return "it was taken a moment ago"
    except OSError as error:
        return error.strerror or str(error)
