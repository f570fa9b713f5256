"""What the app knows of a checkpoint before any weight is read, and the fingerprint of a deployment."""

import hashlib
import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from twinspark_engine.masks.source import MaskAccess
from twinspark_engine.ranks.group import LoadedRank
from twinspark_engine.ranks.transport import Transport
from twinspark_engine.settings import Settings


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Known before any weight is read."""

    vocabulary_size: int
    eos_token_ids: tuple[int, ...]
    masked_token_ids: frozenset[int]
    """Never drawn."""
    context_tokens: int
    """Prompt and output tokens of a request at most; the blocks hold one such request at least."""
    checkpoint_hash: str
    load: Callable[[Transport, MaskAccess], LoadedRank]
    """Loads this rank's weights; called once, from the step thread. Raises CheckpointError."""
    pool_tokens: int = 1
    """Positions that share one key of the indexer."""
    num_blocks: int = 0
    """KV blocks that requests share; 0: a whole context for every slot."""
    scratch_bytes: Callable[[int], int] = lambda _num_tokens: 0
    """To what the selection scratch of a rank grows at most for a request of so many tokens."""


def agreed_hashes(checkpoint: Checkpoint) -> dict[str, str]:
    """What ranks must find equal in their folders: the hash, and the ids that other files than those it covers say."""
    return {
        "checkpoint": checkpoint.checkpoint_hash,
        "eos_token_ids": json.dumps(checkpoint.eos_token_ids),
        "masked_token_ids": json.dumps(sorted(checkpoint.masked_token_ids)),
    }


def build_fingerprint(settings: Settings, hashes: Mapping[str, str]) -> str:
    """Names everything that output bits depend on: weights, precision, world size, software and machine type."""
    parts = [settings.dtype, settings.kv_dtype, str(settings.world_size), platform.machine()]
    parts += [f"{name}={value}" for name, value in sorted(hashes.items())]
    digest = hashlib.sha256("|".join(parts).encode()).hexdigest()
    return f"{settings.world_size}x-{settings.dtype}-{digest[:16]}"
