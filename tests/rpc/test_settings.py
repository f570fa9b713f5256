"""Unknown variables, bad values, --print-settings."""

from pathlib import Path

import pytest
from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from twinspark_rpc import ChannelSettings, ListenSettings, ServiceSettings, format_settings, load_settings


class Settings(ServiceSettings, ListenSettings, ChannelSettings):
    model_config = SettingsConfigDict(env_prefix="TWINSPARK_VISION_")

    port: int = Field(7200, ge=0, le=65535, description="Port of the gRPC listener; 0 picks a free one.")
    token: SecretStr = Field(SecretStr(""), description="Token of the upstream.")
    sizes: tuple[int, ...] = Field((1, 2), description="Sizes.")


def fail(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], **variables: str) -> str:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        load_settings(Settings, [])
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWINSPARK_VISION_PORT", "7300")
    monkeypatch.setenv("TWINSPARK_VISION_LOG_LEVEL", "")  # empty counts as unset
    monkeypatch.setenv("TWINSPARK_ENGINE_WHATEVER", "another service's to check")
    settings = load_settings(Settings, [])
    assert (settings.port, settings.log_level) == (7300, "info")


def test_an_unknown_variable_fails_at_start_and_names_the_nearest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = fail(monkeypatch, capsys, TWINSPARK_VISION_PROT="7300")
    assert text == "TWINSPARK_VISION_PROT: no such setting; did you mean TWINSPARK_VISION_PORT?\n"


def test_a_variable_that_resembles_no_setting_gets_no_advice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("TWINSPARK_VISION_COLOUR", "TWINSPARK_VISION_TOOLS", "TWINSPARK_WHATEVER"):
        with monkeypatch.context() as patch:
            assert fail(patch, capsys, **{name: "1"}) == f"{name}: no such setting\n"


def test_a_variable_of_no_service_fails_at_start(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "TWINSPARK_VISON_PORT: no such setting" in fail(monkeypatch, capsys, TWINSPARK_VISON_PORT="7300")


def test_a_bad_value_names_its_variable_and_no_secret(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = fail(monkeypatch, capsys, TWINSPARK_VISION_PORT="70000", TWINSPARK_VISION_TOKEN="hush")
    assert text.startswith("TWINSPARK_VISION_PORT: ")
    assert "65535" in text
    assert "70000" in text
    assert "hush" not in text


def test_a_key_without_a_certificate_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = fail(monkeypatch, capsys, TWINSPARK_VISION_TLS_KEY_FILE="key.pem")
    assert "set both of tls_certificate_file and tls_key_file" in text


def test_print_settings_prints_effective_values_and_masks_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TWINSPARK_VISION_TOKEN", "hush")
    monkeypatch.setenv("TWINSPARK_VISION_PORT", "7300")
    with pytest.raises(SystemExit) as ended:
        load_settings(Settings, ["--print-settings"])
    text = capsys.readouterr().out
    assert ended.value.code == 0
    assert "# Token of the upstream.\nTWINSPARK_VISION_TOKEN=********\n" in text
    assert "TWINSPARK_VISION_PORT=7300\n" in text
    assert "TWINSPARK_VISION_SIZES=1,2\n" in text
    assert "TWINSPARK_VISION_PORT=7200\n" in format_settings(Settings)


def test_settings_are_frozen() -> None:
    settings = Settings(tls_key_file=Path("k"), tls_certificate_file=Path("c"))
    with pytest.raises(ValueError, match="frozen"):
        settings.port = 1  # type: ignore[misc]
