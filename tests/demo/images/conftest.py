"""The committed model, loaded once."""

import pytest

from twinspark_demo.drafts.template import DEMO_FOLDER
from twinspark_demo.images.reader import Reader


@pytest.fixture(scope="session")
def reader() -> Reader:
    """Of the folder that is served."""
    return Reader(DEMO_FOLDER)
