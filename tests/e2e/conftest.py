"""Two running instances for the tests of this folder, each of two ranks and started by the launcher.

One serves the tiny random checkpoint, the other the demo model.
"""

from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from support.free_ports import pick_free_ports
from support.launched import Launched
from twinspark_demo.drafts.template import DEMO_FOLDER
from twinspark_tools.tiny_checkpoint import SHAPES, write_checkpoint


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoint of the tiny shape, seed 0."""
    folder = tmp_path_factory.mktemp("tiny")
    write_checkpoint(folder, SHAPES["tiny"], seed=0)
    return folder


@pytest.fixture(scope="session")
def instance(tmp_path_factory: pytest.TempPathFactory, tiny_folder: Path) -> Iterator[Launched]:
    """The launcher and what it started; /health is ok."""
    with Launched(tmp_path_factory.mktemp("run"), pick_free_ports(1)[0], tiny_folder, ranks=2) as launched:
        yield launched.wait_healthy()


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launched]:
    """The demo model; /health is ok."""
    with Launched(tmp_path_factory.mktemp("demo"), pick_free_ports(1)[0], DEMO_FOLDER, ranks=2) as launched:
        yield launched.wait_healthy()


@pytest.fixture
def client(instance: Launched) -> Iterator[openai.OpenAI]:
    """The openai client, without retries."""
    with openai.OpenAI(base_url=f"{instance.url}/v1", api_key="none", max_retries=0, timeout=100) as found:
        yield found


@pytest.fixture
def model(client: openai.OpenAI) -> str:
    """Name of the served model."""
    return client.models.list().data[0].id
