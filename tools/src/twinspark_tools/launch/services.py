"""The services of one instance and the environment that connects them."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from twinspark_tools.launch.ports import LOOPBACK, pick_free

GATEWAY_GROUP = "gateway"
ENGINE_GROUP = "engine"
GRAMMAR_GROUP = "grammar"
TOKENIZER_FILE = "tokenizer.json"
"""Without it there is no text to constrain, and the grammar service cannot serve."""
DRAIN_SECONDS = "5"
"""Time that running requests get when the instance stops; a person waits in front of the terminal."""
QUIET_GRPC = {"GRPC_VERBOSITY": "ERROR"}
"""gRPC's core writes plain lines of its own about lost peers between the JSON lines of the logs."""

MOST_THREADS = 8
EVERY_ADDRESS = "0.0.0.0"  # compared with, never bound by default


@dataclass(frozen=True, slots=True)
class Service:
    """One process."""

    name: str
    group: str
    """Processes of a group are stopped together: the gateway's first, the grammar service's last."""
    argv: tuple[str, ...]
    environment: Mapping[str, str]
    grpc: str = ""
    """Address of its gRPC server; empty where it has none."""


@dataclass(frozen=True, slots=True)
class Instance:
    """What a person asked for."""

    port: int
    ranks: int
    model: Path
    dtype: str

    @property
    def has_grammar(self) -> bool:
        """Whether the grammar service can serve this model."""
        return (self.model / TOKENIZER_FILE).is_file()

    @property
    def url(self) -> str:
        """Where this machine reaches the gateway."""
        host = LOOPBACK if gateway_host() == EVERY_ADDRESS else gateway_host()
        return f"http://{host}:{self.port}"


def gateway_host() -> str:
    """Address of the gateway's listener; loopback unless its own setting says otherwise."""
    return os.environ.get("TWINSPARK_GATEWAY_HOST") or LOOPBACK


def build_services(instance: Instance) -> list[Service]:
    """The grammar service and engine ranks on free inner ports, and the gateway.

    Settings of the caller's environment go through.
    """
    *ports, grammar_port = pick_free(instance.ranks + 1)
    grammars = [_grammar(instance, grammar_port)] if instance.has_grammar else []
    grammar_address = grammars[0].grpc if grammars else ""
    engines = [_engine(instance, rank, ports, grammar_address) for rank in range(instance.ranks)]
    environment = {
        "TWINSPARK_GATEWAY_MODEL": str(instance.model),
        "TWINSPARK_GATEWAY_ENGINE": f"{LOOPBACK}:{ports[0]}",
        "TWINSPARK_GATEWAY_GRAMMAR": grammar_address,
        "TWINSPARK_GATEWAY_PORT": str(instance.port),
        **_defaults({"TWINSPARK_GATEWAY_DRAIN_SECONDS": DRAIN_SECONDS, **_silence_limit(), **QUIET_GRPC}),
    }
    argv = (sys.executable, "-m", "twinspark_gateway")
    return [*grammars, *engines, Service("gateway", GATEWAY_GROUP, argv, environment)]


def _grammar(instance: Instance, port: int) -> Service:
    environment = {
        "TWINSPARK_GRAMMAR_MODEL": str(instance.model),
        "TWINSPARK_GRAMMAR_PORT": str(port),
        **_defaults({"TWINSPARK_GRAMMAR_DRAIN_SECONDS": DRAIN_SECONDS, "OMP_NUM_THREADS": "1", **QUIET_GRPC}),
    }
    argv = (sys.executable, "-m", "twinspark_grammar")
    return Service("grammar", GRAMMAR_GROUP, argv, environment, f"{LOOPBACK}:{port}")


def _engine(instance: Instance, rank: int, ports: list[int], grammar_address: str) -> Service:
    threads = str(threads_of_rank(instance.ranks))
    peers = [f"{LOOPBACK}:{port}" for port in ports[1:]] if rank == 0 else []
    environment = {
        "TWINSPARK_ENGINE_MODEL": str(instance.model),
        "TWINSPARK_ENGINE_RANK": str(rank),
        "TWINSPARK_ENGINE_WORLD_SIZE": str(instance.ranks),
        "TWINSPARK_ENGINE_PORT": str(ports[rank]),
        "TWINSPARK_ENGINE_PEERS": ",".join(peers),
        "TWINSPARK_ENGINE_GRAMMAR": grammar_address,
        "TWINSPARK_ENGINE_DTYPE": instance.dtype,
        **_defaults(
            {
                "TWINSPARK_ENGINE_DRAIN_SECONDS": DRAIN_SECONDS,
                "TWINSPARK_ENGINE_THREADS": threads,
                "OMP_NUM_THREADS": threads,
                **QUIET_GRPC,
            }
        ),
    }
    argv = (sys.executable, "-m", "twinspark_engine")
    return Service(f"engine-{rank}", ENGINE_GROUP, argv, environment, f"{LOOPBACK}:{ports[rank]}")


def _silence_limit() -> dict[str, str]:
    """The gateway gives up a silent rank 0 when its peers do; both have the same default."""
    milliseconds = os.environ.get("TWINSPARK_ENGINE_EXCHANGE_TIMEOUT_MS", "")
    if not milliseconds.isdecimal():
        return {}
    return {"TWINSPARK_GATEWAY_KEEPALIVE_TIMEOUT_SECONDS": f"{int(milliseconds) / 1000:g}"}


def _defaults(values: Mapping[str, str]) -> dict[str, str]:
    """Values that the caller's environment may override."""
    return {name: value for name, value in values.items() if not os.environ.get(name)}


def threads_of_rank(ranks: int) -> int:
    """Threads of one CPU op, so that all ranks together fit the cores that this process may use."""
    return max(1, min(MOST_THREADS, usable_cores() // ranks))


def usable_cores() -> int:
    """Cores by affinity and by the control group's quota, where there is one."""
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return cores
    return cores if quota == "max" else max(1, min(cores, int(quota) // int(period)))
