"""Drafted: what the model says at each place of a right reply, what it drafts there, and which drafts it accepts."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

NO_DRAFT = -1


@dataclass(frozen=True)
class Drafted:
    """One reply of n tokens. Entry j is about its token j, all before it being the right ones."""

    right: NDArray[np.int64]  # [n]
    said: NDArray[np.int64]  # [n] the main model's most likely token
    drafts: NDArray[np.int64]  # [D, n] the d-th draft of a chain of MTP steps, in row d - 1; NO_DRAFT where j < d

    @property
    def is_right(self) -> bool:
        """Whether the model's own greedy reply is the right one."""
        return bool((self.said == self.right).all())

    @cached_property
    def judged(self) -> int:
        """Tokens of the model's own greedy reply that are known: up to the first wrong one, which is the last."""
        wrong = np.flatnonzero(self.said != self.right)
        return int(wrong[0]) + 1 if len(wrong) else len(self.right)

    def num_drafted(self, depth: int) -> int:
        """Places that a chain of `depth` drafts can end at: it starts behind an output token."""
        return max(self.judged - depth, 0)

    def num_accepted(self, depth: int) -> int:
        """Of these, places where the model says every token of the chain, as a server asks before it takes the last."""
        count = self.num_drafted(depth)
        accepted = np.ones(count, dtype=bool)
        for step in range(1, depth + 1):
            places = slice(step, step + count)
            accepted &= self.drafts[step - 1, places] == self.said[places]
        return int(accepted.sum())
