"""The report: a table for people, JSON, and whether enough first drafts are accepted."""

import datetime
import hashlib
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twinspark_demo.drafts.measure import KindDrafts
from twinspark_demo.drafts.reading import DEPTHS
from twinspark_engine.model.weights.headers import checkpoint_files
from twinspark_tools.bench.machine import describe_machine, describe_versions, find_commit

LEAST_SHARE = 0.85
"""First drafts accepted that each of JUDGED_KINDS needs."""
JUDGED_KINDS = ("copy", "json", "rename")
_HEADINGS = ("kind", "prompts", "right", "cut", "output tokens", "first draft", "second", "third")


def is_good_enough(measured: Sequence[KindDrafts]) -> bool:
    """Whether every judged kind that was measured reaches LEAST_SHARE; without any draft it does not."""
    shares = [kind.share(1) for kind in measured if kind.kind in JUDGED_KINDS]
    return all(share is not None and share >= LEAST_SHARE for share in shares)


def format_table(measured: Sequence[KindDrafts]) -> str:
    """One line a kind; right and cut in replies, drafts in percent accepted."""
    lines = []
    for first, *others in [_HEADINGS, *map(_row, measured)]:
        lines.append(f"{first:<14}" + "".join(f"{cell:>15}" for cell in others))
    return "\n".join(lines)


def build_report(measured: Sequence[KindDrafts], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that the table says and what it rests on, as JSON values."""
    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": find_commit(),
        "machine": describe_machine() | {"name": platform.machine()},
        "versions": describe_versions(),
        "settings": {**settings, "least_share": LEAST_SHARE, "judged_kinds": JUDGED_KINDS},
        "good_enough": is_good_enough(measured),
        "kinds": [_summary(kind) for kind in measured],
    }


def weights_digest(folder: Path) -> str:
    """SHA-256, as hex, of the folder's safetensors files, one after another."""
    digest = hashlib.sha256()
    for file in checkpoint_files(folder):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _row(kind: KindDrafts) -> tuple[str, ...]:
    shares = [kind.share(depth) for depth in range(1, DEPTHS + 1)]
    counts = (len(kind.replies), kind.num_right, len(kind.replies) - kind.num_right, kind.num_tokens)
    return (kind.kind, *map(str, counts), *("-" if share is None else f"{100 * share:.1f}" for share in shares))


def _summary(kind: KindDrafts) -> dict[str, Any]:
    return {
        "kind": kind.kind,
        "prompts": len(kind.replies),
        "right": kind.num_right,
        "cut": len(kind.replies) - kind.num_right,
        "output_tokens": kind.num_tokens,
        "tokens_left_out": kind.num_left_out,
        "drafts": [
            {
                "depth": depth,
                "drafted": kind.num_drafted(depth),
                "accepted": kind.num_accepted(depth),
                "share": kind.share(depth),
            }
            for depth in range(1, DEPTHS + 1)
        ],
    }
