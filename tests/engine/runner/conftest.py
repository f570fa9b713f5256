"""The tiny random checkpoint, written once for this folder's tests."""

from pathlib import Path

import pytest

from twinspark_tools.tiny_checkpoint.folder import write_checkpoint
from twinspark_tools.tiny_checkpoint.shapes import SHAPES


@pytest.fixture(scope="package")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    write_checkpoint(folder, SHAPES["tiny"])
    return folder
