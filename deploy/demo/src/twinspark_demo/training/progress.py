"""What training prints: one line each some steps, and the table of abilities at the end."""

import time
from collections.abc import Iterable, Sequence

from twinspark_demo.training.check import Ability

COLUMNS = ("main", "mtp", "indexer", "memory", "answer right", "draft right")


class Progress:
    """Lines of one stage; silent where the process is not the first."""

    def __init__(self, stage: str, step_tokens: int, speaks: bool) -> None:
        self._stage, self._step_tokens, self._speaks = stage, step_tokens, speaks
        self._read_at, self._steps_read = time.monotonic(), 0

    def start(self, step: int) -> None:
        """The clock runs from here, at a step of the stage."""
        self._read_at, self._steps_read = time.monotonic(), step

    def say(self, text: str) -> None:
        """One line about the stage."""
        if self._speaks:
            print(f"[{self._stage}] {text}", flush=True)

    def report(self, steps_done: int, sums: Sequence[float], rate: float, norm: float) -> None:
        """The means since the last report, and the speed."""
        now = time.monotonic()
        steps = max(steps_done - self._steps_read, 1)
        seconds = (now - self._read_at) / steps
        means = "  ".join(f"{name} {value / steps:.4f}" for name, value in zip(COLUMNS, sums, strict=True))
        speed = f"{seconds * 1000:.0f} ms, {self._step_tokens / seconds / 1000:.0f}k tokens/s"
        self.say(f"step {steps_done}  {means}  rate {rate:.1e}  norm {norm:.2f}  {speed}")
        self._read_at, self._steps_read = now, steps_done

    def table(self, abilities: Iterable[Ability]) -> None:
        """One line a kind: whole replies right, first drafts accepted."""
        for ability in abilities:
            accepted = f"{ability.drafts_accepted:.3f}"
            self.say(f"  {ability.kind:<12} {ability.right:>3} of {ability.asked:<3}  first drafts {accepted}")
