"""The plan of a drafter's training: which rows, how many blocks in them, which learning rate."""

import math
from dataclasses import dataclass

WARMUP_STEPS = 200
FIRST_RATE, LAST_RATE = 1e-3, 1e-5
SHORT_ROW, LONG_ROW = 1024, 9216
TURNS = ("short", "short", "short", "long")


@dataclass(frozen=True, slots=True)
class BlockFeed:
    """Rows of one length and mixture, of each process."""

    mixture: str  # a name in documents.mixture.MIXTURES
    row_tokens: int
    rows: int
    blocks: int  # in each row


@dataclass(frozen=True, slots=True)
class BlockPlan:
    """Steps take the turns one after another; the rate falls along a half cosine after the warm-up."""

    steps: int
    short_rows: int = 36
    long_rows: int = 4  # 0: short rows only
    blocks: int = 64  # in a short row; a long one has twice as many

    def feeds(self) -> dict[str, BlockFeed]:
        """By name."""
        feeds = {"short": BlockFeed("short", SHORT_ROW, self.short_rows, self.blocks)}
        if self.long_rows:
            feeds["long"] = BlockFeed("long", LONG_ROW, self.long_rows, 2 * self.blocks)
        return feeds

    def turn(self, step: int) -> str:
        """Name of the feed of step 0, 1, ..."""
        return TURNS[step % len(TURNS)] if self.long_rows else "short"

    def share(self, name: str) -> float:
        """Of the steps, those that a feed has."""
        turns = [self.turn(step) for step in range(len(TURNS))]
        return turns.count(name) / len(turns)

    def rate(self, step: int, since_start: int) -> float:
        """Learning rate of step 0, 1, ...; since_start: of this process' run, for the optimizer starts anew with it."""
        cosine = 0.5 * (1.0 + math.cos(math.pi * min(step / self.steps, 1.0)))
        return (LAST_RATE + (FIRST_RATE - LAST_RATE) * cosine) * min((since_start + 1) / WARMUP_STEPS, 1.0)
