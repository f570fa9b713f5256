"""The tokenizer of the tests."""

import pytest

from support.tiny_tokenizer import write_folder
from twinspark_gateway.prompt.tokenizer import Tokenizer, load_tokenizer


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """A tokenizer with GLM's markup."""
    loaded = load_tokenizer(write_folder(tmp_path_factory.mktemp("tools")))
    assert loaded is not None
    return loaded
