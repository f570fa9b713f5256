"""One engine rank and its gateway as processes, and `make gates`' program run against them."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.free_ports import pick_free_ports
from support.launched import SERVING, grpc_health
from support.rank_processes import RankPair, rank_processes
from support.waiting import wait_until

FAULTY_ENGINE = Path(__file__).parent / "faulty_engine.py"
START_SECONDS = 120.0


@dataclass(frozen=True)
class GatedServer:
    """A running server; its engine takes faults."""

    url: str
    folder: Path
    engine: RankPair

    @contextmanager
    def fault(self, name: str) -> Iterator[None]:
        """While open, the engine has this fault."""
        self._want(name)
        try:
            yield
        finally:
            self._want("")

    def run_gates(self, only: str = "") -> subprocess.CompletedProcess[str]:
        """The program to its end; transcripts are kept in the server's folder."""
        options = ["--base-url", self.url, "--records", str(self.folder / "records"), "--only", only]
        command = [sys.executable, "-m", "twinspark_tools.gates", *options]
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False)

    def _want(self, name: str) -> None:
        (self.folder / "wanted").write_text(name)
        wait_until(lambda: (self.folder / "planted").read_text() == name, self.engine.all_logs)


@contextmanager
def gated_server(folder: Path, model: Path, **settings: str) -> Iterator[GatedServer]:
    """/health is ok, and the grammar service serves. settings: of the engine, by name without prefix."""
    for name in ("wanted", "planted"):
        (folder / name).write_text("")
    own = {f"TWINSPARK_ENGINE_{name}": value for name, value in settings.items()}
    grammar = f"127.0.0.1:{pick_free_ports(1)[0]}"
    own["TWINSPARK_ENGINE_GRAMMAR"] = grammar
    # A planted fault must be found by its effect on replies, not by the engine's own books.
    own |= {"FAULT_FOLDER": str(folder), "TWINSPARK_ENGINE_CHECK_CACHE": "false"}
    command = (sys.executable, str(FAULTY_ENGINE))
    with rank_processes(folder, 1, command, str(model), lambda _rank: own) as engine, _grammar(folder, model, grammar):
        engine.start()
        with _gateway(folder, model, engine.address, grammar) as url:
            wait_until(lambda: _is_healthy(url), engine.all_logs, START_SECONDS)
            wait_until(lambda: grpc_health(grammar) == SERVING, "the grammar service", START_SECONDS)
            yield GatedServer(url, folder, engine)


@contextmanager
def _grammar(folder: Path, model: Path, address: str) -> Iterator[None]:
    port = address.rpartition(":")[2]
    own = {"TWINSPARK_GRAMMAR_MODEL": str(model), "TWINSPARK_GRAMMAR_PORT": port}
    with _process(folder, "twinspark_grammar", own):
        yield


@contextmanager
def _gateway(folder: Path, model: Path, engine_address: str, grammar_address: str) -> Iterator[str]:
    port = pick_free_ports(1)[0]
    own = {
        "TWINSPARK_GATEWAY_MODEL": str(model),
        "TWINSPARK_GATEWAY_ENGINE": engine_address,
        "TWINSPARK_GATEWAY_GRAMMAR": grammar_address,
        "TWINSPARK_GATEWAY_PORT": str(port),
        "TWINSPARK_GATEWAY_ENGINE_POLL_SECONDS": "0.1",
    }
    with _process(folder, "twinspark_gateway", own):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _process(folder: Path, module: str, own: dict[str, str]) -> Iterator[None]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TWINSPARK_")} | own
    with (folder / f"{module}.log").open("wb") as output:
        command = [sys.executable, "-m", module]
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=2) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
