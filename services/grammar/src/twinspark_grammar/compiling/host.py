"""The compiler host: holds the loaded compiler and forks a child for each grammar, which it kills at the limits.

`python -m twinspark_grammar.compiling.host FD`, started by `compiler.py`; FD is one end of a socket pair. A fork is
warm at once, and whatever a source does to its child dies with it.
"""

import os
import resource
import signal
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe, wait

from xgrammar import GrammarCompiler

from twinspark_grammar.compiling.frames import CompileCancel, CompileOrder, CompileResult, HostConfig, HostReady
from twinspark_grammar.compiling.job import Compiled, Job, Refusal, Refused
from twinspark_grammar.tokens import build_tokenizer_info
from twinspark_grammar.vocabulary import load_vocabulary

SPARE_CPU_SECONDS = 2
"""Beyond the time limit on all threads: a child that outlives its host ends by this."""


@dataclass(slots=True)
class _Child:
    number: int
    process_id: int
    started_at: float
    was_late: bool = False


class CompilerHost:
    """One loop over the service's orders and cancels, and the children's results."""

    def __init__(self, service: Connection, config: HostConfig) -> None:
        self._service = service
        self._config = config
        self._vocabulary = load_vocabulary(config.model)
        self._compiler = GrammarCompiler(
            build_tokenizer_info(self._vocabulary), max_threads=config.compile_threads, cache_enabled=False
        )
        self._children: dict[Connection, _Child] = {}

    def run(self) -> None:
        """Serve until the service closes its end; children that still run are killed."""
        self._service.send(HostReady(os.getpid()))
        while True:
            ready = wait([self._service, *self._children], self._seconds_to_deadline())
            for connection in ready:
                if connection is not self._service:
                    self._finish(connection)  # type: ignore[arg-type]
            self._kill_late()
            if self._service in ready and not self._take_frame():
                self._kill_all()
                return

    def _take_frame(self) -> bool:
        """Do what the service asks; False where it is gone."""
        try:
            frame: CompileOrder | CompileCancel = self._service.recv()
        except EOFError:
            return False
        if isinstance(frame, CompileOrder):
            self._fork(frame)
        else:
            self._kill(frame.number)
        return True

    def _fork(self, order: CompileOrder) -> None:
        receiver, sender = Pipe(duplex=False)
        process_id = os.fork()
        if process_id == 0:
            receiver.close()
            self._work(order, sender)
        sender.close()
        self._children[receiver] = _Child(order.number, process_id, time.monotonic())

    def _work(self, order: CompileOrder, sender: Connection) -> None:
        """Run in the child: compile, send, end."""
        status = 1
        try:
            self._service.close()
            _limit(self._config)
            sender.send(Job(self._compiler, self._vocabulary, self._config.limits).run(order.source))
            status = 0
        finally:
            os._exit(status)

    def _finish(self, receiver: Connection) -> None:
        child = self._children.pop(receiver)
        try:
            outcome: Compiled | Refused | None = receiver.recv()
        except (EOFError, OSError):
            outcome = None
        receiver.close()
        os.waitpid(child.process_id, 0)
        seconds = time.monotonic() - child.started_at
        was_killed = outcome is None
        if outcome is None:
            limit = f"{self._config.compile_seconds:g} s" if child.was_late else "the memory that one grammar gets"
            outcome = Refused(Refusal.TOO_COMPLEX, f"compiling takes more than {limit}")
        self._service.send(CompileResult(child.number, outcome, seconds, was_killed))

    def _kill(self, number: int) -> None:
        """Kill the child of an order, if it still runs; its end is seen as any other's."""
        for child in self._children.values():
            if child.number == number:
                os.kill(child.process_id, signal.SIGKILL)

    def _seconds_to_deadline(self) -> float | None:
        started = [child.started_at for child in self._children.values() if not child.was_late]
        return max(0.0, min(started) + self._config.compile_seconds - time.monotonic()) if started else None

    def _kill_late(self) -> None:
        oldest = time.monotonic() - self._config.compile_seconds
        for child in self._children.values():
            if not child.was_late and child.started_at <= oldest:
                child.was_late = True
                os.kill(child.process_id, signal.SIGKILL)

    def _kill_all(self) -> None:
        for child in self._children.values():
            os.kill(child.process_id, signal.SIGKILL)
            os.waitpid(child.process_id, 0)


def _limit(config: HostConfig) -> None:
    """Bound this process's memory and processor time."""
    with open("/proc/self/statm") as file:
        held = int(file.read().split()[0]) * resource.getpagesize()
    most = held + config.compile_memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    seconds = int(config.compile_seconds * config.compile_threads) + SPARE_CPU_SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Serve on the socket that the first argument names."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the service closes its end when it is done
    service = Connection(int(sys.argv[1]))
    try:
        CompilerHost(service, service.recv()).run()
    except (EOFError, BrokenPipeError, ConnectionResetError):  # the service is gone
        return


if __name__ == "__main__":
    main()
