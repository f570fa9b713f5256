"""The tiny random checkpoint, cut to one layer of each kind: many requests are sent to it."""

from dataclasses import replace
from pathlib import Path

import pytest

from twinspark_tools.tiny_checkpoint import SHAPES, write_checkpoint


@pytest.fixture(scope="session")
def short_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny shape with four layers: KDA and DSA, dense and experts. Read only."""
    folder = tmp_path_factory.mktemp("short")
    write_checkpoint(folder, replace(SHAPES["tiny"], num_layers=4, num_dense_layers=2), seed=0)
    return folder
