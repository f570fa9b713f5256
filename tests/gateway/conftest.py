"""A gateway over the fake engine, on real sockets."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import hypothesis
import pytest

from fakes.engine import FakeEngine, serve_engine
from support.constrained import run_grammar_service
from support.served_gateway import serve_gateway
from support.tiny_tokenizer import write_folder
from support.waiting import PATIENCE_SECONDS
from twinspark_gateway.prompt.tokenizer import Tokenizer, load_tokenizer
from twinspark_gateway.settings import Settings

# A slow machine is no failure.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")


@dataclass
class RunningGateway:
    """A gateway that serves, its engine, and a client of it."""

    url: str
    engine: FakeEngine
    client: httpx2.AsyncClient

    async def post(self, path: str, body: Any) -> httpx2.Response:
        """Post JSON."""
        return await self.client.post(path, json=body)

    async def events(self, path: str, body: dict[str, Any]) -> list[str]:
        """Post JSON with stream: true and give the data of each event."""
        response = await self.post(path, {**body, "stream": True})
        assert response.status_code == 200, response.text
        blocks = response.text.split("\n\n")
        assert blocks.pop() == ""
        return [block.removeprefix("data: ") for block in blocks if not block.startswith(":")]


GatewayFactory = Callable[..., Awaitable[RunningGateway]]


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder named tiny with tokenizer and chat template."""
    return write_folder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def tokenizer(model_folder: Path) -> Tokenizer:
    """The tokenizer of that folder, with GLM's markup."""
    loaded = load_tokenizer(model_folder)
    assert loaded is not None
    return loaded


@pytest.fixture(scope="session")
def grammar_address(model_folder: Path) -> Iterator[str]:
    """Address of a grammar service with the tiny tokenizer."""
    with run_grammar_service(model_folder) as address:
        yield address


@pytest.fixture
async def start_gateway(model_folder: Path) -> AsyncIterator[GatewayFactory]:
    """Start gateways with any settings; they stop when the test ends."""
    async with AsyncExitStack() as stack:

        async def start(fake: FakeEngine | None = None, **settings: Any) -> RunningGateway:
            fake = fake or FakeEngine()
            address = await stack.enter_async_context(serve_engine(fake))
            values: dict[str, Any] = {
                "model": model_folder,
                "engine": address,
                "engine_poll_seconds": 0.05,
                "drain_seconds": 1,
                "idle_seconds": 5,
            }
            values |= settings
            url = await stack.enter_async_context(serve_gateway(Settings(**values)))
            client = await stack.enter_async_context(httpx2.AsyncClient(base_url=url, timeout=PATIENCE_SECONDS))
            return RunningGateway(url, fake, client)

        yield start


@pytest.fixture
async def gateway(start_gateway: GatewayFactory) -> RunningGateway:
    """A gateway with default settings over a fake engine with default behaviour."""
    return await start_gateway()
