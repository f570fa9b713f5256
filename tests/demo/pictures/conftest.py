"""Pictures as drawn, without the trip through JPEG."""

import pytest

from twinspark_demo.pictures import paint


@pytest.fixture
def lossless(monkeypatch: pytest.MonkeyPatch) -> None:
    """No picture goes through JPEG."""
    monkeypatch.setattr(paint, "_JPEG_SHARE", 0.0)
