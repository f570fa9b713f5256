"""Settings of one engine rank, from the environment. Each field says whether all ranks must agree on it."""

import enum
import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from twinspark_engine.scheduler.plan import CELL_TOKENS
from twinspark_rpc import ChannelSettings, ListenSettings, ServiceSettings


class Scope(enum.Enum):
    """Whether a setting changes a shape, a bit or the order of exchanges."""

    AGREE = "agree"
    LOCAL = "local"


AGREE = Scope.AGREE
LOCAL = Scope.LOCAL

INHERITED_SCOPES: dict[str, Scope] = {
    "log_level": LOCAL,
    "tls_certificate_file": LOCAL,
    "tls_key_file": LOCAL,
    "keepalive_timeout_seconds": LOCAL,
    "max_message_bytes": LOCAL,
    "host": LOCAL,
    "tls_client_ca_file": LOCAL,
    "metrics_port": LOCAL,
    "drain_seconds": LOCAL,
    "tls_server_ca_file": LOCAL,
}
"""Scopes of the fields that every service has; all others carry their mark."""


class Settings(ServiceSettings, ListenSettings, ChannelSettings):
    """Loaded once, by `__main__`."""

    model_config = SettingsConfigDict(env_prefix="TWINSPARK_ENGINE_")

    port: Annotated[int, LOCAL] = Field(
        7100, ge=0, le=65535, description="Port of this rank's gRPC listener; 0 picks a free one."
    )
    rank: Annotated[int, LOCAL] = Field(0, ge=0, le=63, description="Place of this process in the group; 0 decides.")
    world_size: Annotated[int, AGREE] = Field(1, ge=1, le=64, description="Number of ranks.")
    peers: Annotated[tuple[str, ...], NoDecode, LOCAL] = Field(
        (), description="Rank 0: host:port of ranks 1, 2, ... in order, separated by commas. Empty elsewhere."
    )
    group_host: Annotated[str, LOCAL] = Field(
        "127.0.0.1", description="Address of this machine over which the ranks exchange partial sums."
    )
    transport: Annotated[Literal["tcp", "gloo"], AGREE] = Field(
        "tcp",
        description="What carries partial sums between ranks on CPUs: TCP connections of our own, or torch's gloo.",
    )
    model: Annotated[Path, LOCAL] = Field(
        description="Folder of the checkpoint; ranks compare a hash of its headers, not its path."
    )
    dtype: Annotated[Literal["float32", "bfloat16"], AGREE] = Field(
        "float32", description="Compute dtype of activations and of the latent cache."
    )
    slots: Annotated[int, AGREE] = Field(4, ge=1, le=16, description="Requests that run at once.")
    context: Annotated[int, AGREE] = Field(
        0,
        ge=0,
        le=1 << 20,
        description="Prompt and output tokens of one request at most; 0: the checkpoint's own limit, at most 32768.",
    )
    chunk_tokens_beside_decoders: Annotated[int, AGREE] = Field(
        2048,
        ge=64,
        le=65536,
        description="Tokens of long prompts in one step while a request decodes or a short prompt shares the step; a "
        "multiple of 64.",
    )
    chunk_tokens_alone: Annotated[int, AGREE] = Field(
        4096, ge=64, le=65536, description="Prompt tokens of one step otherwise; a multiple of 64."
    )
    short_prompt_tokens: Annotated[int, LOCAL] = Field(
        1024,
        ge=0,
        le=65536,
        description="Prompts of at most so many tokens are computed in the step that admits them, whatever time "
        "decode is owed.",
    )
    decode_share: Annotated[float, LOCAL] = Field(
        0.5, ge=0, le=0.95, description="Part of the time that decode gets beside longer prompts; 0 lets them go on."
    )
    arrival_wait_ms: Annotated[int, LOCAL] = Field(
        10,
        ge=0,
        le=10,
        description="Milliseconds that a first arrival waits at most, while no request runs, for others to share its "
        "forward.",
    )
    kv_blocks: Annotated[int, AGREE] = Field(
        0,
        ge=0,
        le=65536,
        description="KV blocks of 256 tokens that requests share; 0: a whole context for every slot, at most 4097.",
    )
    kv_dtype: Annotated[Literal["compute", "fp8"], AGREE] = Field(
        "compute", description="Latent rows in the cache: in the compute dtype, or fp8 (e4m3 and one scale a row)."
    )
    check_cache: Annotated[bool, LOCAL] = Field(
        False, description="For debugging: compare the books of the KV cache after every step, and stop on an error."
    )
    memory_source: Annotated[Literal["available", "unified", "device"], LOCAL] = Field(
        "available",
        description="Free memory that admission reads: MemAvailable, unified memory's MemFree, or a GPU's own.",
    )
    memory_reserve_mib: Annotated[int, LOCAL] = Field(
        512, ge=0, le=1 << 24, description="MiB that must stay free after load; with less, this rank refuses to start."
    )
    memory_admit_mib: Annotated[int, LOCAL] = Field(
        128, ge=0, le=1 << 24, description="MiB that must stay free on each rank when a request joins running ones."
    )
    queue_limit: Annotated[int, LOCAL] = Field(
        256, ge=0, le=65536, description="Requests that wait for a slot at most; more are refused."
    )
    exchange_timeout_ms: Annotated[int, AGREE] = Field(
        10_000,
        ge=200,
        le=600_000,
        description="Milliseconds after which a silent rank counts as lost, in an exchange and on its idle connection.",
    )
    grammar: Annotated[str, LOCAL] = Field(
        "",
        description="host:port of this rank's grammar service, or several separated by commas; empty: requests with a "
        "grammar are refused.",
    )
    mask_timeout_ms: Annotated[int, LOCAL] = Field(
        0,
        ge=0,
        le=600_000,
        description="Milliseconds that a step waits at most for token masks before the requests that lack theirs end; "
        "below EXCHANGE_TIMEOUT_MS; 0: a quarter of that, at most 1000.",
    )
    threads: Annotated[int, LOCAL] = Field(1, ge=1, le=256, description="Threads of one CPU op on this rank.")
    seed_salt: Annotated[int, AGREE] = Field(
        0, ge=0, lt=2**63, description="Mixed into the seed that a request without one gets from its prompt."
    )
    max_top_logprobs: Annotated[int, AGREE] = Field(
        20, ge=0, le=128, description="Most likely ids reported at most beside a token's own log probability."
    )

    @model_validator(mode="before")
    @classmethod
    def _split_peers(cls, values: Any) -> Any:
        if isinstance(values, dict) and isinstance(values.get("peers"), str):
            entries = [entry.strip() for entry in values["peers"].split(",")]
            return {**values, "peers": tuple(entry for entry in entries if entry)}
        return values

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("chunk_tokens_beside_decoders", "chunk_tokens_alone"):
            if getattr(self, name) % CELL_TOKENS:
                raise ValueError(f"{name} must be a multiple of {CELL_TOKENS}, not {getattr(self, name)}")
        if self.mask_timeout_ms >= self.exchange_timeout_ms:
            most = self.exchange_timeout_ms
            raise ValueError(f"mask_timeout_ms must be below exchange_timeout_ms, {most}, not {self.mask_timeout_ms}")
        if self.rank >= self.world_size:
            raise ValueError(f"rank {self.rank} needs a world_size above it, not {self.world_size}")
        expected = self.world_size - 1 if self.rank == 0 else 0
        if len(self.peers) != expected:
            raise ValueError(f"rank {self.rank} of {self.world_size} needs {expected} peers, not {len(self.peers)}")
        return self


MOST_MASK_TIMEOUT_MS = 1000
"""By default: all requests of a step wait for the masks of one."""


def mask_timeout_seconds(settings: Settings) -> float:
    """Time that a step waits for masks at most."""
    return (settings.mask_timeout_ms or min(settings.exchange_timeout_ms // 4, MOST_MASK_TIMEOUT_MS)) / 1000


def scope_of(name: str) -> Scope:
    """Whether ranks must agree on a field. Raises KeyError for one that carries no mark."""
    for mark in Settings.model_fields[name].metadata:
        if isinstance(mark, Scope):
            return mark
    return INHERITED_SCOPES[name]


def agreed_values(settings: Settings) -> dict[str, str]:
    """Every field that ranks must agree on, with its value as JSON."""
    values = settings.model_dump(mode="json")
    return {name: json.dumps(values[name]) for name in Settings.model_fields if scope_of(name) is Scope.AGREE}
