"""Heads: losses that ask the tower's rows directly, beside the language model's; they are not exported.

Two teachers: what each row's own cell shows, and the answers that all rows of a picture give together. The way through
the frozen language model alone is long, and a fresh tower would learn little from it.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from twinspark_demo.pictures.marks import ANSWER_SIZES, DIGITS, NOTHING, NUM_THINGS, UNKNOWN

NOTHING_WEIGHT = 0.05  # most cells show nothing
_MOST_SCORE = 10.0  # softmax without a maximum: scores stay within


@dataclass(frozen=True, slots=True)
class HeadLosses:
    """fp32 scalars; the first two carry gradients."""

    things: Tensor
    answers: Tensor
    things_right: Tensor  # share of cells with something that are right
    number_right: Tensor  # of pictures of a number: all digits right
    colour_right: Tensor
    count_right: Tensor


class Heads(nn.Module):
    """Reads merged rows [M, width]."""

    def __init__(self, width: int, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)

        def fresh(rows: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(rows, width, generator=generator) / width**0.5)

        self.things, self.queries, self.answers = fresh(NUM_THINGS), fresh(len(ANSWER_SIZES)), fresh(sum(ANSWER_SIZES))
        kinds = torch.arange(len(ANSWER_SIZES)).repeat_interleave(torch.tensor(ANSWER_SIZES))
        self.register_buffer("kinds", kinds, persistent=False)

    def forward(self, rows: Tensor, owners: Tensor, things: Tensor, answers: Tensor) -> HeadLosses:
        """owners int64 [M]: the picture of each row, P for padding; things int64 [M], answers int64 [P, 5]."""
        rows = F.rms_norm(rows.float(), (rows.shape[-1],))
        is_row = owners < len(answers)
        logits = F.linear(rows, self.things)
        weights = torch.where(things == NOTHING, NOTHING_WEIGHT, 1.0) * is_row
        losses = F.cross_entropy(logits, things, reduction="none")
        shown = (things != NOTHING) & is_row
        seen = (logits.argmax(-1) == things) & shown
        told, known = self._answers(rows, owners, len(answers)), answers != UNKNOWN
        parts = told.split(ANSWER_SIZES, dim=-1)
        wanted = answers.clamp(min=0)
        each = torch.stack([F.cross_entropy(part, wanted[:, i], reduction="none") for i, part in enumerate(parts)], -1)
        right = torch.stack([part.argmax(-1) for part in parts], -1) == wanted
        return HeadLosses(
            (losses * weights).sum() / weights.sum().clamp(min=1.0),
            (each * known).sum() / known.sum().clamp(min=1),
            _share(seen, shown),
            _share(right[:, :DIGITS].all(-1), known[:, 0]),
            _share(right[:, DIGITS], known[:, DIGITS]),
            _share(right[:, DIGITS + 1], known[:, DIGITS + 1]),
        )

    def _answers(self, rows: Tensor, owners: Tensor, pictures: int) -> Tensor:
        """[P, sum of ANSWER_SIZES]: a mean of the rows' logits, weighed for each answer anew."""
        shares = torch.exp(_MOST_SCORE * torch.tanh(F.linear(rows, self.queries) / _MOST_SCORE))
        kinds = self.get_buffer("kinds")
        values = F.linear(rows, self.answers) * shares.index_select(1, kinds)
        sums = values.new_zeros(pictures + 1, values.shape[1]).index_add(0, owners, values)
        totals = shares.new_zeros(pictures + 1, shares.shape[1]).index_add(0, owners, shares)
        return (sums / totals.clamp(min=1e-6).index_select(1, kinds))[:pictures]


def _share(right: Tensor, asked: Tensor) -> Tensor:
    return (right & asked).sum() / asked.sum().clamp(min=1)
