"""The launcher's one loop: start, wait for /health, watch, stop."""

import os
import signal
import time
import urllib.error
import urllib.request
from collections import Counter
from types import FrameType

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from twinspark_tools.launch.run_folder import RunFolder
from twinspark_tools.launch.services import ENGINE_GROUP, GRAMMAR_GROUP, TOKENIZER_FILE, Instance, Service
from twinspark_tools.launch.supervisor import PRIORITIES, STOP_SECONDS, Event, Exited, Supervisor
from twinspark_tools.launch.terminal import Terminal, last_lines, say

POLL_SECONDS = 0.2
HEALTH_SECONDS = 1.0
PROGRESS_SECONDS = 5.0
MOST_FAILURES = 5
"""A service that ends this often while /health is never ok will not come up."""

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class ServiceFailedError(Exception):
    """The run cannot go on; the message names the process."""


class Launcher:
    """Runs one instance until a signal or a failure that a restart does not cure."""

    def __init__(self, instance: Instance, services: list[Service], folder: RunFolder) -> None:
        self._instance = instance
        self._services = services
        self._folder = folder
        self._supervisor = Supervisor(folder, services)
        self._terminal: Terminal | None = None
        self._num_signals = 0
        self._pids: dict[str, int] = {}
        self._failures: Counter[str] = Counter()
        self._is_healthy = self._was_healthy = False

    def run(self) -> None:
        """Returns after a stop signal. Raises ServiceFailedError; everything is stopped in either case."""
        # nohup: the run is meant to outlive its terminal.
        outlives = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        self._terminal = None if outlives else Terminal()
        for number in STOP_SIGNALS:
            if number != signal.SIGHUP or not outlives:
                signal.signal(number, self._on_signal)
        say(f"starting {', '.join(service.name for service in self._services)}; logs: {self._folder.path}")
        if not self._instance.has_grammar:
            say(f"no grammar service: {self._instance.model} has no {TOKENIZER_FILE}; structured output is refused")
        supervisor_pid = self._supervisor.start()
        try:
            self._watch(supervisor_pid)
        finally:
            self._stop()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._num_signals += 1

    def _watch(self, supervisor_pid: int) -> None:
        started = next_health = time.monotonic()
        next_progress = started + PROGRESS_SECONDS
        while not self._num_signals and not (self._terminal and self._terminal.is_gone()):
            self._book_events(supervisor_pid)
            if not self._supervisor.is_running:
                log = self._folder.log("supervisord")
                raise ServiceFailedError(f"the process manager ended; the end of {log}:\n{last_lines(log)}")
            now = time.monotonic()
            if not self._is_healthy and now >= next_health:
                next_health = now + HEALTH_SECONDS
                self._check_health(now - started)
            if not self._is_healthy and now >= next_progress:
                next_progress = now + PROGRESS_SECONDS
                say(f"waiting for {self._instance.url}/health ({now - started:.0f} s)")
            time.sleep(POLL_SECONDS)

    def _book_events(self, supervisor_pid: int) -> None:
        before = dict(self._pids)
        for event in self._supervisor.events():
            self._book(event)
        if self._pids != before:
            self._folder.write_run(
                {
                    "url": self._instance.url,
                    "model": str(self._instance.model),
                    "ranks": self._instance.ranks,
                    "grpc": {service.name: service.grpc for service in self._services if service.grpc},
                    "launcher_pid": os.getpid(),
                    "supervisor_pid": supervisor_pid,
                    "pids": self._pids,
                }
            )

    def _book(self, event: Event) -> None:
        if not isinstance(event, Exited):
            self._pids[event.name] = event.pid
            return
        self._pids.pop(event.name, None)
        log = self._folder.log(event.name)
        end = f"the end of {log}:\n{last_lines(log)}"
        if event.is_final:
            raise ServiceFailedError(f"{event.name} refused to start ({event.how}); {end}")
        self._failures[event.name] += 1
        if self._failures[event.name] >= MOST_FAILURES:
            raise ServiceFailedError(f"{event.name} ended {MOST_FAILURES} times in a row ({event.how}); {end}")
        self._is_healthy = False
        say(f"{event.name} ended ({event.how}) and is started again; {end}")
        say(self._grpc_line())

    def _check_health(self, seconds: float) -> None:
        if not (_answers(f"{self._instance.url}/health") and all(map(_serves, self._grpc_of(GRAMMAR_GROUP)))):
            return
        self._is_healthy = True
        self._failures.clear()
        if self._was_healthy:
            say(f"serving again: {self._instance.url}")
            return
        self._was_healthy = True
        say(f"serving after {seconds:.0f} s: {self._instance.url}")
        say(f"{self._grpc_line()}\n{_how_to_try(self._instance.url)}")

    def _grpc_line(self) -> str:
        """Where generic gRPC clients reach the ranks, rank 0 first, and the grammar service."""
        grammar = "".join(f"; grammar: grpc {address}" for address in self._grpc_of(GRAMMAR_GROUP))
        return f"engine ranks: grpc {', '.join(self._grpc_of(ENGINE_GROUP))}{grammar}"

    def _grpc_of(self, group: str) -> list[str]:
        return [service.grpc for service in self._services if service.group == group]

    def _stop(self) -> None:
        asked = self._num_signals
        say("stopping (again to stop at once)")
        self._supervisor.ask_to_stop()
        # The groups stop one after the other, each in up to STOP_SECONDS.
        deadline = time.monotonic() + len(PRIORITIES) * STOP_SECONDS + 2
        while self._supervisor.is_running and time.monotonic() < deadline and self._num_signals <= max(asked, 1):
            time.sleep(POLL_SECONDS)
        self._supervisor.kill()
        self._folder.drop_run()
        say("stopped")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=HEALTH_SECONDS) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _serves(address: str) -> bool:
    """Whether a gRPC server's health is SERVING."""
    with grpc.insecure_channel(address) as channel:
        try:
            answer = HealthStub(channel).Check(HealthCheckRequest(), timeout=HEALTH_SECONDS)
        except grpc.RpcError:
            return False
    return bool(answer.status == HealthCheckResponse.SERVING)


def _how_to_try(url: str) -> str:
    message = '{"role": "user", "content": "What is the capital of France?"}'
    body = f'{{"messages": [{message}], "max_tokens": 32, "stream": true}}'
    return (
        f"    curl -N {url}/v1/chat/completions -H 'Content-Type: application/json' -d '{body}'\n"
        f'    or with the openai client: OpenAI(base_url="{url}/v1", api_key="none")\n'
        "    Ctrl-C stops everything."
    )
