"""The service's side of compiling: starts the host, sends it orders, starts it again when it is lost."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

import structlog

from twinspark_grammar.compiling.frames import CompileCancel, CompileOrder, CompileResult, HostConfig, HostReady
from twinspark_grammar.errors import CompilerLostError, CompilersBusyError
from twinspark_grammar.source import GrammarSource
from twinspark_grammar.stats import Stats

log = structlog.get_logger()

RESTART_SECONDS = 1.0
"""Between two starts of the host, so that one that cannot start does not spin."""


@dataclass(slots=True)
class _Host:
    """One host process and what it owes."""

    process: "subprocess.Popen[bytes]"
    connection: Connection
    owed: "dict[int, asyncio.Future[CompileResult]]" = field(default_factory=dict)
    send_lock: threading.Lock = field(default_factory=threading.Lock)

    def send(self, frame: object) -> None:
        with self.send_lock:
            self.connection.send(frame)


class Compiler:
    """Used from the event loop. `num_at_once` compilations run, `queue_limit` more may wait."""

    def __init__(self, config: HostConfig, num_at_once: int, queue_limit: int, stats: Stats) -> None:
        self._config = config
        self._most = num_at_once + queue_limit
        self._queue_limit = queue_limit
        self._turns = asyncio.Semaphore(num_at_once)
        self._stats = stats
        self._num_orders = 0
        self._host: _Host | None = None
        self._ready = asyncio.Event()
        self._closing = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._dropping: set[asyncio.Task[None]] = set()

    @property
    def host_process_id(self) -> int | None:
        """The host's process id while it takes orders."""
        return self._host.process.pid if self._host is not None and self._ready.is_set() else None

    async def start(self) -> None:
        """Start the host, and keep one until `close`; returns when it takes orders."""
        self._keeper = asyncio.create_task(self._keep_host())
        await self._ready.wait()

    async def compile(self, source: GrammarSource) -> CompileResult:
        """Compile one source; cancelled, it leaves the queue, or its child is killed.

        Raises CompilersBusyError and CompilerLostError.
        """
        if self._stats.num_compiling >= self._most:
            raise CompilersBusyError(self._queue_limit)
        self._stats.num_compiling += 1
        try:
            async with self._turns:
                await self._ready.wait()
                return await self._order(source)
        finally:
            self._stats.num_compiling -= 1

    async def _order(self, source: GrammarSource) -> CompileResult:
        host = self._host
        assert host is not None
        self._num_orders += 1
        number = self._num_orders
        result: asyncio.Future[CompileResult] = asyncio.get_running_loop().create_future()
        host.owed[number] = result
        sending = asyncio.ensure_future(asyncio.to_thread(host.send, CompileOrder(number, source)))
        try:
            await asyncio.shield(sending)
            return await result
        except asyncio.CancelledError:
            dropping = asyncio.create_task(_drop(host, sending, number))
            self._dropping.add(dropping)  # the event loop itself holds no task
            dropping.add_done_callback(self._dropping.discard)
            raise
        except OSError:
            raise CompilerLostError from None
        finally:
            host.owed.pop(number, None)

    async def close(self) -> None:
        """End the host and what it runs."""
        self._closing.set()
        if self._host is not None:
            self._host.process.kill()
        if self._keeper is not None:
            await self._keeper

    async def _keep_host(self) -> None:
        while not self._closing.is_set():
            host = self._host = await asyncio.to_thread(_start_host, self._config)
            if self._closing.is_set():
                host.process.kill()
            ended = asyncio.Event()
            call = asyncio.get_running_loop().call_soon_threadsafe
            reader = threading.Thread(target=_read, args=(host, call, self._take, ended.set), daemon=True)
            reader.start()
            await ended.wait()
            self._ready.clear()
            for result in host.owed.values():
                if not result.done():
                    result.set_exception(CompilerLostError())
            await asyncio.to_thread(host.process.wait)
            if not self._closing.is_set():
                self._stats.compiler_restarts_total += 1
                log.error("compiler_lost", exit_code=host.process.returncode)
                await asyncio.sleep(RESTART_SECONDS)

    def _take(self, frame: HostReady | CompileResult) -> None:
        host = self._host
        if isinstance(frame, HostReady):
            self._ready.set()
            log.info("compiler_ready", process_id=frame.process_id)
        elif host is not None and (result := host.owed.get(frame.number)) is not None and not result.done():
            result.set_result(frame)


async def _drop(host: _Host, sending: "asyncio.Future[None]", number: int) -> None:
    """Tell the host, once it has the order, that nobody waits for it."""
    with suppress(OSError):  # a host that is lost has dropped all
        await sending
        await asyncio.to_thread(host.send, CompileCancel(number))


def _start_host(config: HostConfig) -> _Host:
    ours, theirs = socket.socketpair()
    with theirs:
        command = [sys.executable, "-m", "twinspark_grammar.compiling.host", str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, process_group=0)
    host = _Host(process, Connection(ours.detach()))
    try:
        host.send(config)
    except OSError:
        process.kill()
    return host


def _read(
    host: _Host,
    call: Callable[..., object],
    take: Callable[[HostReady | CompileResult], None],
    end: Callable[[], None],
) -> None:
    """Hand the host's frames to the event loop until it is gone. Runs in a thread of its own."""
    try:
        while True:
            call(take, host.connection.recv())
    except (EOFError, OSError):
        pass
    finally:
        host.process.kill()
        host.connection.close()
        try:
            call(end)
        except RuntimeError:  # the event loop ended first
            os.waitpid(host.process.pid, 0)
