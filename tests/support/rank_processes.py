"""Engine ranks as processes of a test: start, signal, read their logs, and leave none behind."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.free_ports import pick_free_ports
from support.waiting import PATIENCE_SECONDS

HASH_ENGINE = Path(__file__).parent / "hash_engine.py"
EXCHANGE_TIMEOUT_SECONDS = 2.0


@dataclass
class RankProcess:
    """One process; its log lines go to a file."""

    rank: int
    command: list[str]
    environment: dict[str, str]
    log_file: Path
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self.log_file.open("ab") as output:
            self.process = subprocess.Popen(
                self.command, env=self.environment, stdout=output, stderr=output, start_new_session=True
            )

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def wait(self, timeout: float = PATIENCE_SECONDS) -> int:
        assert self.process is not None
        return self.process.wait(timeout)

    def restart(self) -> None:
        self.wait()
        self.start()

    def logs(self, event: str) -> list[dict[str, Any]]:
        lines = self.log_file.read_text().splitlines() if self.log_file.exists() else []
        parsed = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in parsed if line["event"] == event]

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.send(signal.SIGCONT)
            self.send(signal.SIGKILL)
            self.process.wait()


@dataclass
class RankPair:
    """Rank 0 and, with world_size 2, rank 1."""

    ranks: list[RankProcess]
    ports: list[int]
    log_folder: Path
    started: list[RankProcess] = field(default_factory=list)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.ports[0]}"

    def start(self) -> None:
        for rank in self.ranks:
            rank.start()

    def all_logs(self) -> str:
        return "\n".join(f"== rank {r.rank}\n{r.log_file.read_text()}" for r in self.ranks if r.log_file.exists())


@contextmanager
def rank_processes(
    folder: Path,
    world_size: int = 2,
    command: tuple[str, ...] = (sys.executable, str(HASH_ENGINE)),
    model: str = "unused",
    of_rank: Callable[[int], dict[str, str]] = lambda _rank: {},
) -> Iterator[RankPair]:
    """A pair that is not started yet; every process is gone afterwards. `of_rank`: further variables of a rank."""
    ports = pick_free_ports(world_size)
    ranks = []
    for rank in range(world_size):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TWINSPARK_")}
        environment |= {
            "OMP_NUM_THREADS": "1",
            "TWINSPARK_ENGINE_RANK": str(rank),
            "TWINSPARK_ENGINE_WORLD_SIZE": str(world_size),
            "TWINSPARK_ENGINE_PORT": str(ports[rank]),
            "TWINSPARK_ENGINE_MODEL": model,
            "TWINSPARK_ENGINE_EXCHANGE_TIMEOUT_MS": str(int(EXCHANGE_TIMEOUT_SECONDS * 1000)),
            "TWINSPARK_ENGINE_DRAIN_SECONDS": "10",
            "TWINSPARK_ENGINE_CHECK_CACHE": "true",
        }
        if rank == 0 and world_size > 1:
            environment["TWINSPARK_ENGINE_PEERS"] = ",".join(f"127.0.0.1:{port}" for port in ports[1:])
        environment |= of_rank(rank)
        ranks.append(RankProcess(rank, list(command), environment, folder / f"rank{rank}.log"))
    pair = RankPair(ranks, ports, folder)
    try:
        yield pair
    finally:
        for rank_process in ranks:
            rank_process.kill()
