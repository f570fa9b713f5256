"""The tokenizers that grammars are tested with."""

from pathlib import Path

import pytest

from support.grammar_texts import Grammars, demo_grammars, tiny_grammars


@pytest.fixture(scope="session")
def demo() -> Grammars:
    """Of the demo model: 2,024 ids, 24 rows of the model behind them."""
    return demo_grammars()


@pytest.fixture(scope="session", params=["demo", "tiny"])
def grammars(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Grammars:
    """Of the demo model, and of the tiny checkpoint."""
    if request.param == "demo":
        return demo_grammars()
    folder: Path = tmp_path_factory.mktemp("tiny")
    return tiny_grammars(folder)
