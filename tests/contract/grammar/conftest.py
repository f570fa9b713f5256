"""The grammar service that the contract is checked on: the real one, with the tiny tokenizer."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.constrained import run_grammar_service
from support.tiny_tokenizer import write_folder
from twinspark_gateway.clients.grammar import GrammarClient
from twinspark_rpc import ChannelSettings


class _Settings(ChannelSettings):
    pass


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a service that serves."""
    folder: Path = write_folder(tmp_path_factory.mktemp("grammar") / "tiny")
    with run_grammar_service(folder) as found:
        yield found


@pytest.fixture
def notes() -> list[str]:
    """Outcomes that the client told of."""
    return []


@pytest.fixture
async def client(address: str, notes: list[str]) -> AsyncIterator[GrammarClient]:
    """The gateway's client of it."""
    found = GrammarClient(
        address, _Settings(), timeout_seconds=60, note_compile=lambda outcome, seconds: notes.append(outcome)
    )
    yield found
    await found.close()
