"""How a rank refuses to start: which exit code, and what the log names."""

import socket
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from support.hash_engine import build_checkpoint
from twinspark_engine import __main__ as program


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["twinspark_engine"])
    monkeypatch.setattr(program, "configure_logging", lambda *_args, **_fields: None)
    monkeypatch.setenv("TWINSPARK_ENGINE_MODEL", str(tmp_path))
    monkeypatch.setenv("TWINSPARK_ENGINE_PORT", "0")


def test_a_folder_without_a_config_is_refused_by_name_and_ends_with_78() -> None:
    with capture_logs() as logs:
        assert program.main() == 78
    assert [line["event"] for line in logs] == ["checkpoint_refused"]
    assert "config.json" in logs[0]["message"]


def test_a_taken_port_is_named_and_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "open_checkpoint", build_checkpoint)
    with socket.create_server(("127.0.0.1", 0)) as taken, capture_logs() as logs:
        port = taken.getsockname()[1]
        monkeypatch.setenv("TWINSPARK_ENGINE_PORT", str(port))
        assert program.main() == 1
    refused = [line for line in logs if line["event"] == "address_taken"]
    assert len(refused) == 1
    assert str(port) in refused[0]["message"]


def test_an_unknown_variable_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TWINSPARK_ENGINE_SLOT", "4")
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert ended.value.code == 2
    assert "TWINSPARK_ENGINE_SLOT: no such setting; did you mean TWINSPARK_ENGINE_SLOTS?" in capsys.readouterr().err
