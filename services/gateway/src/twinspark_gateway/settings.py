"""Settings of the gateway, from the environment."""

import ipaddress
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from twinspark_rpc import ChannelSettings, ServiceSettings

REASONING_FIELDS = Literal["both", "reasoning", "reasoning_content"]


class Settings(ServiceSettings, ChannelSettings):
    """Loaded once, by `__main__`."""

    model_config = SettingsConfigDict(env_prefix="TWINSPARK_GATEWAY_", protected_namespaces=())

    host: str = Field("127.0.0.1", description="Address that the HTTP listener binds.")
    port: int = Field(8000, ge=0, le=65535, description="Port of the HTTP listener; 0 picks a free one.")
    engine: str = Field("127.0.0.1:7100", description="host:port of the EngineService (rank 0).")
    grammar: str = Field(
        "", description="host:port of the GrammarService; empty: requests with a format or forced calls are a 503."
    )
    model: Path = Field(description="Checkpoint folder; tokenizer, chat template and generation_config.json are read.")
    model_name: str = Field("", max_length=200, description="Name of the served model; empty: the folder's name.")
    model_aliases: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Other names that requests may use, separated by commas."
    )
    default_max_tokens: int = Field(
        0,
        ge=0,
        le=1 << 20,
        description="Output tokens of a chat request that gives no limit; 0: what the context leaves.",
    )
    max_body_bytes: int = Field(
        32 << 20, ge=1 << 10, le=2**31 - 1, description="Largest request body, in bytes; a larger one is a 413."
    )
    body_timeout_seconds: float = Field(
        60.0,
        gt=0,
        le=3600,
        description="Seconds in which a request's head, and then its body, must arrive; a slower body is a 408.",
    )
    reasoning_field: REASONING_FIELDS = Field(
        "reasoning_content", description="Name of the reasoning in replies: reasoning_content, reasoning, or both."
    )
    reasoning_effort: Literal["", "low", "high", "max"] = Field(
        "", description="Effort of a chat request that names none: low, high or max; empty: the template's own default."
    )
    thinking_budget: int = Field(
        0,
        ge=0,
        le=1 << 20,
        description="Token of a chat reply, by number, at which a reasoning that still goes on is closed, where the "
        "request names none; 0: none.",
    )
    remembered_replies: int = Field(
        1024,
        ge=0,
        le=1 << 20,
        description="Replies with tool calls whose reasoning is kept, and put back where a client does not send it; "
        "0: none.",
    )
    remembered_bytes: int = Field(
        32 << 20, ge=0, le=2**31 - 1, description="Most bytes of reasoning that are kept for remembered_replies."
    )
    admission_wait_seconds: float = Field(
        0.5,
        ge=0,
        le=60,
        description="Seconds that a stream's headers wait for the engine, so that a refusal is a plain HTTP error.",
    )
    sse_keepalive_seconds: float = Field(
        10.0, ge=0.05, le=300, description="Seconds of silence after which a stream carries a comment line."
    )
    engine_poll_seconds: float = Field(1.0, ge=0.05, le=60, description="Seconds between two GetStats calls.")
    engine_timeout_seconds: float = Field(
        5.0,
        ge=0.1,
        le=600,
        description="Deadline of GetStats, Describe and GetMemory; statistics older than this are stale.",
    )
    grammar_timeout_seconds: float = Field(
        30.0,
        ge=0.1,
        le=600,
        description="Deadline of a call of the GrammarService: what waits there and is compiled longer is a 503.",
    )
    check_seconds: float = Field(
        5.0,
        ge=0.1,
        le=600,
        description="Seconds that the check of an answer may take whose schema masks do not wholly enforce, its turn "
        "waited for included.",
    )
    health_mode: Literal["basic", "strict"] = Field(
        "basic",
        description="What a request does that the engine leaves without a token for too long: basic lists it in "
        "/health; strict also makes /health a 503 and refuses new requests.",
    )
    stall_seconds: float = Field(
        60.0,
        gt=0,
        le=86400,
        description="Seconds without a token after which a request stalls, and one more for each 200 prompt tokens.",
    )
    idle_seconds: int = Field(75, ge=1, le=3600, description="Seconds that an idle HTTP connection is kept open.")
    drain_seconds: int = Field(
        30, ge=0, le=3600, description="Seconds that running requests get to end after SIGTERM, before they are cut."
    )
    keys_file: Path | None = Field(
        None, description="File of API keys, mode 0600, one `label: key` a line; unset: no key is asked for."
    )
    keys: SecretStr = Field(
        SecretStr(""), description="API keys as `label: key`, separated by commas, beside those of keys_file."
    )
    open_metrics: bool = Field(False, description="Answer /metrics without a key even where keys are set.")
    request_log_file: Path | None = Field(
        None, description="File that gets one JSON line a request, without text; unset: only the process's log has it."
    )
    request_log_bytes: int = Field(
        64 << 20, ge=1 << 10, le=2**40, description="Size in bytes at which the request log begins a new file."
    )
    request_log_kept: int = Field(3, ge=1, le=1000, description="Full files of the request log that are kept.")
    cors_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="Browser origins that may call, separated by commas, or *; empty: cross-origin calls are off."
    )

    @field_validator("model_aliases", "cors_origins", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.model.is_dir():
            raise ValueError("model is not a folder")
        if self.keys_file is not None and not self.keys_file.is_file():
            raise ValueError("keys_file does not exist")
        return self

    @property
    def served_name(self) -> str:
        """The model name that replies carry."""
        return self.model_name or self.model.resolve().name

    @property
    def asks_for_keys(self) -> bool:
        """Whether a request needs a key."""
        return self.keys_file is not None or bool(self.keys.get_secret_value())

    @property
    def binds_loopback(self) -> bool:
        """Whether only this machine can reach the listener."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False
