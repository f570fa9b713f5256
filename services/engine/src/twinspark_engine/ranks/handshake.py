"""What ranks compare before their first exchange: settings marked agree, and hashes of what each has loaded or will."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog
import torch

import twinspark_engine
import twinspark_kernels

log = structlog.get_logger()

ABSENT = "null"
"""Stands for a value that the other rank does not have at all."""


@dataclass(frozen=True, slots=True)
class AgreedValues:
    """One rank's side: name to JSON value, and name to hash."""

    settings: Mapping[str, str]
    hashes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """A name on which two ranks disagree, with both values."""

    name: str
    leader_value: str
    follower_value: str


def software_hashes() -> dict[str, str]:
    """What of this process and its CPU changes bits: our source, torch's version, the instruction set that it uses."""
    return {
        "source": hash_source([Path(package.__path__[0]) for package in (twinspark_engine, twinspark_kernels)]),
        "torch": torch.__version__,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
    }


def hash_source(folders: Sequence[Path]) -> str:
    """Hash of all Python files below the folders, by relative path and content."""
    digest = hashlib.sha256()
    for folder in folders:
        for file in sorted(folder.rglob("*.py")):
            content = file.read_bytes()
            digest.update(f"{file.relative_to(folder.parent)} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def find_differences(leader: AgreedValues, follower: AgreedValues) -> list[Difference]:
    """Every setting and hash whose values are not equal, by name; one that only a rank has counts."""
    return [
        Difference(name, left.get(name, ABSENT), right.get(name, ABSENT))
        for left, right in ((leader.settings, follower.settings), (leader.hashes, follower.hashes))
        for name in sorted({*left, *right})
        if left.get(name) != right.get(name)
    ]


def log_differences(differences: list[Difference], follower_rank: int) -> None:
    """One error line for each, with both values."""
    for difference in differences:
        log.error(
            "ranks_differ",
            name=difference.name,
            leader_value=difference.leader_value,
            follower_value=difference.follower_value,
            follower_rank=follower_rank,
        )
