"""Settings of the grammar service, from the environment."""

from pathlib import Path
from typing import Self

from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from twinspark_rpc import ListenSettings, ServiceSettings


class Settings(ServiceSettings, ListenSettings):
    """Loaded once, by `__main__`."""

    model_config = SettingsConfigDict(env_prefix="TWINSPARK_GRAMMAR_", protected_namespaces=())

    port: int = Field(7400, ge=0, le=65535, description="Port of the gRPC listener; 0 picks a free one.")
    model: Path = Field(description="Checkpoint folder; only tokenizer.json is read.")
    cache_mib: int = Field(
        256, ge=0, le=1 << 20, description="MiB of compiled grammars that are kept; those unused longest go first."
    )
    max_source_bytes: int = Field(
        256 << 10, ge=1 << 10, le=16 << 20, description="Largest source of a grammar, in bytes of UTF-8."
    )
    max_depth: int = Field(
        64, ge=4, le=256, description="Deepest nesting of arrays and objects in a source that is JSON."
    )
    compile_seconds: float = Field(
        10.0, ge=0.05, le=600, description="Seconds that one compilation may take before it is killed."
    )
    compile_memory_mib: int = Field(
        1024,
        ge=64,
        le=1 << 20,
        description="MiB that one compilation may use beyond what the compiler holds when idle.",
    )
    compile_threads: int = Field(1, ge=1, le=64, description="Threads of one compilation.")
    max_compiled_mib: int = Field(
        64, ge=1, le=1024, description="Largest compiled grammar, in MiB as it is sent by the compiler."
    )
    compilers: int = Field(2, ge=1, le=64, description="Compilations that run at once.")
    compile_queue_limit: int = Field(
        64, ge=0, le=65536, description="Compilations that wait for their turn at most; more are refused."
    )
    mask_threads: int = Field(2, ge=1, le=64, description="Threads that compute masks, and as many for slow streams.")
    mask_seconds: float = Field(
        0.25, ge=0.01, le=600, description="Processor seconds that one window of masks may take before its stream ends."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not self.model.is_dir():
            raise ValueError("model is not a folder")
        return self
