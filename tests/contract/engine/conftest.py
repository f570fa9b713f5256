"""The engines that the contract is checked on: the fake, and the real one with the tiny checkpoint, one and two ranks.

The suite knows an engine by its address alone.
"""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from fakes.engine import FakeEngine, serve_engine
from fakes.engine_model import FakeModel
from support.engine_client import EngineClient
from support.free_ports import pick_free_ports
from twinspark_tools.tiny_checkpoint import SHAPES, write_checkpoint

NUM_SLOTS = 2
QUEUE_LIMIT = 6
CONTEXT = 1024


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random checkpoint folder."""
    folder = tmp_path_factory.mktemp("contract") / "tiny"
    write_checkpoint(folder, SHAPES["tiny"], 0)
    return folder


@contextmanager
def run_ranks(model: Path, world_size: int) -> Iterator[str]:
    """Run the real engine; give rank 0's address."""
    ports = pick_free_ports(world_size)
    common: dict[str, Any] = {
        "MODEL": model,
        "WORLD_SIZE": world_size,
        "SLOTS": NUM_SLOTS,
        "CONTEXT": CONTEXT,
        "QUEUE_LIMIT": QUEUE_LIMIT,
        "LOG_LEVEL": "warning",
        "DRAIN_SECONDS": 1,
        "CHECK_CACHE": True,
    }
    with ExitStack() as stack:
        for rank, port in enumerate(ports):
            settings = common | {"RANK": rank, "PORT": port}
            if rank == 0 and world_size > 1:
                settings["PEERS"] = ",".join(f"127.0.0.1:{peer}" for peer in ports[1:])
            variables = {f"TWINSPARK_ENGINE_{name}": str(value) for name, value in settings.items()}
            process = subprocess.Popen(
                [sys.executable, "-m", "twinspark_engine"], env=os.environ | variables | {"OMP_NUM_THREADS": "1"}
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield f"127.0.0.1:{ports[0]}"


@pytest.fixture(scope="session")
def real_addresses(tiny_checkpoint: Path) -> Iterator[dict[int, str]]:
    """Addresses of real engines by world size; each starts when it is first asked for."""
    with ExitStack() as stack:

        class Addresses(dict[int, str]):
            def __missing__(self, world_size: int) -> str:
                self[world_size] = stack.enter_context(run_ranks(tiny_checkpoint, world_size))
                return self[world_size]

        yield Addresses()


@pytest.fixture(
    params=["fake", pytest.param("one_rank", marks=pytest.mark.slow), pytest.param("two_ranks", marks=pytest.mark.slow)]
)
async def engine(request: pytest.FixtureRequest) -> AsyncIterator[EngineClient]:
    """A client of an engine that serves, with NUM_SLOTS, QUEUE_LIMIT and CONTEXT."""
    if request.param != "fake":
        addresses = request.getfixturevalue("real_addresses")
        client = EngineClient(addresses[1 if request.param == "one_rank" else 2])
        await client.wait_health("SERVING")
        yield client
        await client.close()
        return
    model = FakeModel(num_slots=NUM_SLOTS, context_length=CONTEXT)
    fake = FakeEngine(model, step_seconds=0.001, prefill_seconds=0.02, queue_limit=QUEUE_LIMIT)
    fake.has_grammar_service = False
    async with serve_engine(fake) as address:
        client = EngineClient(address)
        yield client
        await client.close()


@pytest.fixture(autouse=True)
async def idle_after(engine: EngineClient) -> AsyncIterator[None]:
    """After every test each slot and the queue must come free by themselves."""
    yield
    await engine.wait_stats(num_running=0, num_waiting=0, num_prefilling=0)
