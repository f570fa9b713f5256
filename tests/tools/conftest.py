"""The tiny checkpoint, written once."""

from pathlib import Path

import pytest

from twinspark_tools.tiny_checkpoint import SHAPES, write_checkpoint


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny shape, seed 0. Read only."""
    folder = tmp_path_factory.mktemp("tiny")
    write_checkpoint(folder, SHAPES["tiny"], seed=0)
    return folder
