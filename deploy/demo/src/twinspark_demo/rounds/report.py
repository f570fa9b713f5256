"""The report: a table for people, JSON, and whether every kind reaches its mark."""

import datetime
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from twinspark_demo.rounds.measure import KindRounds
from twinspark_tools.bench.machine import describe_machine, describe_versions, find_commit

LEAST_KEPT = 2.0
"""Kept tokens a round that a kind needs."""
LEAST_KEPT_OF_LONG = 3.5
LONG_KINDS = ("copy", "json", "rename")
_HEADINGS = ("kind", "replies", "prompt tokens", "output tokens", "rounds", "kept a round", "at most", "mark")


def mark_of(kind: str) -> float:
    """Kept tokens a round that it needs."""
    return LEAST_KEPT_OF_LONG if kind in LONG_KINDS else LEAST_KEPT


def reaches_mark(kind: KindRounds) -> bool:
    """Whether it keeps so many; without rounds it does not."""
    return kind.kept is not None and kind.kept >= mark_of(kind.kind)


def parts_of_needles(measured: Sequence[KindRounds]) -> list[KindRounds]:
    """The replies of all needles once more: those whose code the drafter sees, and those whose code it does not."""
    replies = [reply for kind in measured for reply in kind.replies]
    parts = [
        KindRounds(name, [reply for reply in replies if reply.sees_code is sees])
        for name, sees in (("code seen", True), ("code unseen", False))
    ]
    return [part for part in parts if part.replies]


def format_table(measured: Sequence[KindRounds]) -> str:
    """One line a kind, then both parts of the needles; tokens as means of the replies."""
    lines = []
    for first, *others in [_HEADINGS, *map(_row, [*measured, *parts_of_needles(measured)])]:
        lines.append(f"{first:<14}" + "".join(f"{cell:>15}" for cell in others))
    return "\n".join(lines)


def build_report(measured: Sequence[KindRounds], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that the table says and what it rests on, as JSON values."""
    return {
        "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": find_commit(),
        "machine": describe_machine() | {"name": platform.machine()},
        "versions": describe_versions(),
        "settings": dict(settings),
        "good_enough": all(map(reaches_mark, measured)),
        "kinds": [_summary(kind) for kind in measured],
        "parts_of_needles": [_figures(part) for part in parts_of_needles(measured)],
    }


def _row(kind: KindRounds) -> tuple[str, ...]:
    lengths = (f"{kind.prompt_tokens:.0f}", f"{kind.output_tokens:.0f}")
    kept, most = ("-" if value is None else f"{value:.2f}" for value in (kind.kept, kind.most))
    mark = f"{mark_of(kind.kind)}" + ("" if reaches_mark(kind) else " missed")
    return (kind.kind, str(len(kind.replies)), *lengths, str(kind.rounds), kept, most, mark)


def _figures(kind: KindRounds) -> dict[str, Any]:
    return {
        "kind": kind.kind,
        "mark": mark_of(kind.kind),
        "reaches_mark": reaches_mark(kind),
        "kept_a_round": kind.kept,
        "kept_at_most": kind.most,
        "rounds": kind.rounds,
    }


def _summary(kind: KindRounds) -> dict[str, Any]:
    return _figures(kind) | {"replies": [asdict(reply) for reply in kind.replies]}
