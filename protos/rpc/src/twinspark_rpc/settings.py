"""Settings: the parts that every service has, and loading them with errors that name the variable.

A service writes `class Settings(ServiceSettings, ListenSettings, ChannelSettings)` with
`model_config = SettingsConfigDict(env_prefix="TWINSPARK_<SERVICE>_")` and a description for each field, and its
`__main__` calls `load_settings` once.
"""

import difflib
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

FAMILY = "TWINSPARK_"
PREFIXES = tuple(f"{FAMILY}{service}_" for service in ("GATEWAY", "ENGINE", "VISION", "SESSIONS", "GRAMMAR"))
# Ratios of difflib. Two swapped letters in a word of four, such as PROT for PORT, are 0.75.
_LEAST_SIMILARITY = 0.8
_LEAST_SIMILARITY_OF_RESTS = 0.75


class SettingsError(Exception):
    """The environment does not make valid settings; the message names each variable and what is wrong with it."""


class ServiceSettings(BaseSettings):
    """Base of each service's Settings: frozen, one environment prefix, empty variables count as unset."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid", env_ignore_empty=True)

    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Least level of the log lines that are written."
    )


class _Identity(BaseModel):
    tls_certificate_file: Path | None = Field(
        None, description="PEM file with this process's certificate chain; with the key it turns TLS on."
    )
    tls_key_file: Path | None = Field(None, description="PEM file with the certificate's private key.")
    keepalive_timeout_seconds: float = Field(
        10.0, ge=0.2, le=3600, description="A connection whose other end is silent for this many seconds is given up."
    )
    max_message_bytes: int = Field(
        64 << 20, ge=1 << 20, le=2**31 - 1, description="Largest gRPC message that is taken or sent, in bytes."
    )

    @model_validator(mode="after")
    def _check_identity(self) -> Self:
        if (self.tls_certificate_file is None) != (self.tls_key_file is None):
            raise ValueError("set both of tls_certificate_file and tls_key_file, or none")
        return self


class ListenSettings(_Identity):
    """Fields of a service that listens for gRPC calls; the service gives `port` its own default."""

    host: str = Field("127.0.0.1", description="Address that the gRPC listener binds.")
    port: int = Field(0, ge=0, le=65535, description="Port of the gRPC listener; 0 picks a free one.")
    tls_client_ca_file: Path | None = Field(
        None, description="PEM file with the CA of the callers; set, every caller must show a certificate of it."
    )
    metrics_port: int = Field(
        0, ge=0, le=65535, description="Port of the Prometheus endpoint, on the same address; 0 turns it off."
    )
    drain_seconds: float = Field(
        30.0,
        ge=0,
        le=3600,
        description="Seconds that running calls get to end after SIGTERM, before they are cancelled.",
    )

    @model_validator(mode="after")
    def _check_listener(self) -> Self:
        if self.tls_client_ca_file is not None and self.tls_certificate_file is None:
            raise ValueError("tls_client_ca_file needs tls_certificate_file and tls_key_file")
        return self


class ChannelSettings(_Identity):
    """Fields of a process that calls other services."""

    tls_server_ca_file: Path | None = Field(
        None, description="PEM file with the CA of the called services; set, every call uses TLS."
    )


SettingsT = TypeVar("SettingsT", bound=ServiceSettings)


def load_settings(settings_class: type[SettingsT], arguments: Sequence[str] | None = None) -> SettingsT:
    """The settings of this process, from the environment.

    Ends the process with status 2 and a message on stderr if a variable is unknown or its value is wrong, and with
    status 0 after `--print-settings`, which is the only argument that a service knows.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if given not in ([], ["--print-settings"]):
            raise SettingsError(
                f"unknown argument {given[0]!r}; the only one is --print-settings, the rest is environment"
            )
        settings = build_settings(settings_class, os.environ)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(2) from None
    if given:
        sys.stdout.write(format_settings(settings_class, settings))
        raise SystemExit(0)
    return settings


def build_settings(settings_class: type[SettingsT], environment: Mapping[str, str]) -> SettingsT:
    """The settings in the environment of this process. Raises SettingsError."""
    unknown = find_unknown_variables(settings_class, environment)
    if unknown:
        raise SettingsError("\n".join(unknown))
    try:
        return settings_class()
    except ValidationError as error:
        lines = [_explain(settings_class, dict(detail)) for detail in error.errors()]
        raise SettingsError("\n".join(lines)) from None


def find_unknown_variables(settings_class: type[ServiceSettings], environment: Mapping[str, str]) -> list[str]:
    """One line for each variable that looks like ours and is none: pydantic-settings would ignore it in silence.

    Variables of other services are theirs to check.
    """
    prefix = _prefix(settings_class)
    known = {prefix + name.upper() for name in settings_class.model_fields}
    lines = []
    for name in sorted(name.upper() for name in environment):
        ours = name.startswith(prefix)
        if not name.startswith(FAMILY) or name in known or (not ours and name.startswith(PREFIXES)):
            continue
        near = _nearest(name, known, prefix)
        lines.append(f"{name}: no such setting" + (f"; did you mean {near}?" if near else ""))
    return lines


def _nearest(name: str, known: Iterable[str], prefix: str) -> str | None:
    """The setting that was meant. Behind our prefix only the rest is compared: the prefix makes any two look alike."""
    if name.startswith(prefix):
        rests = [setting.removeprefix(prefix) for setting in known]
        near = difflib.get_close_matches(name.removeprefix(prefix), rests, 1, _LEAST_SIMILARITY_OF_RESTS)
        return prefix + near[0] if near else None
    near = difflib.get_close_matches(name, list(known), 1, _LEAST_SIMILARITY)
    return near[0] if near else None


def format_settings(settings_class: type[ServiceSettings], settings: ServiceSettings | None = None) -> str:
    """The settings as lines `VARIABLE=value`, each under its description; secrets are masked.

    Without `settings`: the defaults, whatever the environment holds.
    """
    prefix = _prefix(settings_class)
    lines = []
    for name, info in settings_class.model_fields.items():
        if settings is not None:
            value = _format_value(getattr(settings, name))
        else:
            value = "(required)" if info.is_required() else _format_value(info.get_default(call_default_factory=True))
        lines += [f"# {info.description}", f"{prefix}{name.upper()}={value}"]
    return "\n".join(lines) + "\n"


def _prefix(settings_class: type[ServiceSettings]) -> str:
    return str(settings_class.model_config.get("env_prefix", "")).upper()


def _format_value(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, SecretStr):
        return "********" if value.get_secret_value() else ""
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(_format_value(entry) for entry in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _explain(settings_class: type[ServiceSettings], detail: dict[str, Any]) -> str:
    prefix = _prefix(settings_class)
    if not detail["loc"]:  # a check across fields: its message names them
        return f"{prefix}*: {detail['msg'].removeprefix('Value error, ')}"
    name = str(detail["loc"][0])
    info = settings_class.model_fields.get(name)
    secret = info is None or "Secret" in str(info.annotation)
    missing = detail["type"] == "missing"
    shown = "" if secret or missing else f", not {detail['input']!r}"
    return f"{prefix}{name.upper()}: {detail['msg']}{shown}"
