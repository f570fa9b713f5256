"""The gates' outcomes as a table for people, whose last line counts them."""

from collections.abc import Sequence
from dataclasses import dataclass

from twinspark_tools.gates.outcome import Outcome, Verdict


@dataclass(frozen=True, slots=True)
class Row:
    """One gate that has ended."""

    name: str
    seconds: float
    outcome: Outcome


HEADER = f"{'gate':<12}{'verdict':<9}{'time':>9}  what was found"


def format_row(row: Row) -> str:
    """One line; a detail that came over several is joined."""
    return f"{row.name:<12}{row.outcome.verdict.value:<9}{row.seconds:>7.1f} s  {' '.join(row.outcome.detail.split())}"


def format_counts(rows: Sequence[Row]) -> str:
    """`N passed, N failed, N skipped`."""
    verdicts = [row.outcome.verdict for row in rows]
    return ", ".join(f"{verdicts.count(verdict)} {verdict.value}" for verdict in Verdict)
