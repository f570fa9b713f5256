"""What a gate found."""

import enum
from dataclasses import dataclass


class Verdict(enum.Enum):
    """How a gate ended; a skipped one says nothing about the server."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict and one line that says what was compared, what differs, or why nothing was."""

    verdict: Verdict
    detail: str


def passed(detail: str) -> Outcome:
    """Everything that the gate looked at was as promised."""
    return Outcome(Verdict.PASSED, detail)


def failed(detail: str) -> Outcome:
    """Something was not as promised."""
    return Outcome(Verdict.FAILED, detail)


def skipped(detail: str) -> Outcome:
    """Nothing was looked at."""
    return Outcome(Verdict.SKIPPED, detail)
