"""Settings of the grammar service."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from twinspark_grammar.settings import Settings


def build(folder: Path, **fields: Any) -> Settings:
    return Settings(model=folder, **fields)


def test_the_default_port_is_7400(tmp_path: Path) -> None:
    assert build(tmp_path).port == 7400


def test_the_model_must_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="model is not a folder"):
        build(tmp_path / "absent")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("compile_seconds", 0),
        ("compile_memory_mib", 1),
        ("max_depth", 257),
        ("max_source_bytes", 1 << 25),
        ("compilers", 0),
        ("mask_threads", 0),
        ("mask_seconds", 0),
        ("cache_mib", -1),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(tmp_path: Path, name: str, value: float) -> None:
    with pytest.raises(ValidationError, match=name):
        build(tmp_path, **{name: value})
