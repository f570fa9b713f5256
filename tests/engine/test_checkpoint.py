"""The fingerprint of a deployment: equal for equal inputs, another one as soon as anything that moves bits differs."""

import platform
from pathlib import Path

import pytest

from twinspark_engine.checkpoint import build_fingerprint
from twinspark_engine.ranks.handshake import hash_source, software_hashes
from twinspark_engine.settings import Settings

HASHES = {"checkpoint": "a", "torch": "1", "source": "s"}
SETTINGS = Settings(model=Path("m"), dtype="float32")
FINGERPRINT = build_fingerprint(SETTINGS, HASHES)


def test_equal_deployments_have_one_fingerprint_whatever_is_local() -> None:
    assert build_fingerprint(Settings(model=Path("elsewhere"), port=1, threads=2), dict(HASHES)) == FINGERPRINT


@pytest.mark.parametrize("name", HASHES)
def test_every_hash_changes_it(name: str) -> None:
    assert build_fingerprint(SETTINGS, {**HASHES, name: "other"}) != FINGERPRINT


def test_precision_world_size_and_machine_type_change_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [Settings(model=Path("m"), dtype="bfloat16"), Settings(model=Path("m"), world_size=2, peers="a:1")]
    digests = {build_fingerprint(settings, HASHES).rsplit("-", 1)[1] for settings in (SETTINGS, *others)}
    assert len(digests) == 3
    monkeypatch.setattr(platform, "machine", lambda: "another")
    assert build_fingerprint(SETTINGS, HASHES) != FINGERPRINT


def test_the_source_of_engine_and_kernels_is_among_the_hashes(tmp_path: Path) -> None:
    assert {"source", "torch", "cpu_capability"} <= software_hashes().keys()
    package = tmp_path / "package"
    package.mkdir()
    (package / "a.py").write_text("x = 1\n")
    before = hash_source([package])
    assert hash_source([package]) == before
    (package / "a.py").write_text("x = 2\n")
    assert hash_source([package]) != before
